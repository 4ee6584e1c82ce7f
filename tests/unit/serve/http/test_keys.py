"""API keys from the settings and from a file that changes while the service runs, with their sites and rates."""

import json
import os
import stat

import pytest

from waygraph.cli.commands.keys import list_keys
from waygraph.cli.options import load_settings
from waygraph.core.errors import InvalidInput, NotFound, RateLimited, Unauthorized
from waygraph.core.key_file import KeyFile, key_digest
from waygraph.core.settings import ServeSettings
from waygraph.serve.http.keys import ApiKeys, Caller

KEY = "a-key-of-these-tests"


class Clock:
    now = 100.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def path(tmp_path):
    return tmp_path / "keys.json"


def made(path, name="agent", sites=None, rate=0.0):
    kept, key = (KeyFile.read(path) if path.exists() else KeyFile()).with_key(name, sites, rate)
    kept.write(path)
    return f"Bearer {key}"


def test_without_keys_callers_are_anonymous():
    keys = ApiKeys(ServeSettings())
    assert not keys
    assert keys.authenticate(None) == Caller()
    assert Caller().may_access("any.example")


@pytest.mark.parametrize(
    "header", [None, "", "Bearer", "Bearer ", "Bearer wrong", f"Basic {KEY}", KEY, f"Bearer {KEY.upper()}"]
)
def test_with_keys_other_callers_are_rejected(header):
    keys = ApiKeys(ServeSettings(api_keys=(KEY, "another-of-these-tests")))
    assert keys
    with pytest.raises(Unauthorized):
        keys.authenticate(header)
    assert keys.authenticate(f"bearer  {KEY} ").sites is None


@pytest.mark.parametrize(
    ("key", "problem"),
    [
        ("", "is empty"),
        (" \t\n ", "is white space"),
        ("\u3000" * 20, "is white space"),
        ("secret", "has 6 characters, fewer than 16"),
        ("a" + 40 * " " + "b", "has 2 characters, fewer than 16"),
        (f" {KEY}", "cannot carry"),
        (f"{KEY}\n", "cannot carry"),
        ("ключ-из-двадцати-букв", "cannot carry"),
    ],
)
def test_settings_with_a_key_that_protects_nothing_are_refused_and_say_which(key, problem, monkeypatch):
    monkeypatch.setenv("WAYGRAPH_SERVE__API_KEYS", json.dumps([KEY, key]))
    with pytest.raises(InvalidInput, match=rf"serve\.api_keys: key 2 of 2 .*{problem}"):
        load_settings()


def test_a_key_file_with_an_empty_key_prevents_the_start_and_the_commands(path):
    entry = {"name": "agent", "sha256": key_digest("")}
    path.write_text(json.dumps({"keys": [entry]}))
    with pytest.raises(InvalidInput, match="the key of 'agent' is empty"):
        ApiKeys(ServeSettings(keys_file=path))
    with pytest.raises(InvalidInput, match="the key of 'agent' is empty"):
        list_keys(path)


@pytest.mark.parametrize("key", [" ", "secret"])
def test_a_short_key_whose_digest_was_written_into_a_key_file_is_no_key(path, key):
    path.write_text(json.dumps({"keys": [{"name": "agent", "sha256": key_digest(key)}]}))
    with pytest.raises(Unauthorized):
        ApiKeys(ServeSettings(keys_file=path)).authenticate(f"Bearer {key}")


def test_a_key_of_the_file_has_its_sites(path, clock):
    key = made(path, sites=("shop.example",))
    caller = ApiKeys(ServeSettings(keys_file=path), clock=clock).authenticate(key)
    assert caller == Caller(key_digest(key.removeprefix("Bearer ")), frozenset({"shop.example"}))
    caller.require_access("shop.example")
    with pytest.raises(NotFound, match=r"'bank\.example' is not mapped"):
        caller.require_access("bank.example")


def test_the_file_holds_digests_and_only_its_owner_can_read_it(path):
    key = made(path).removeprefix("Bearer ")
    assert key.startswith("wg_")
    assert len(key) > 40
    assert key not in path.read_text()
    assert key_digest(key) in path.read_text()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_keys_are_added_and_revoked_without_a_restart(path, clock):
    first = made(path)
    keys = ApiKeys(ServeSettings(keys_file=path), clock=clock)
    second = made(path, "second")
    with pytest.raises(Unauthorized):
        keys.authenticate(second)  # the file is not checked again within a second
    clock.now += 2
    assert keys.authenticate(second)
    KeyFile.read(path).without("agent").write(path)
    clock.now += 2
    with pytest.raises(Unauthorized):
        keys.authenticate(first)
    KeyFile().write(path)
    clock.now += 2
    assert keys
    with pytest.raises(Unauthorized):
        keys.authenticate(second)


@pytest.mark.parametrize("damage", ["not json", '{"keys": [{"name": "x"}]}', '{"others": []}'])
def test_a_file_that_becomes_invalid_keeps_the_keys_and_is_logged(path, clock, damage, caplog):
    key = made(path)
    keys = ApiKeys(ServeSettings(keys_file=path), clock=clock)
    path.write_text(damage)
    clock.now += 2
    assert keys.authenticate(key)
    assert "stay as they were" in caplog.text
    path.unlink()
    clock.now += 2
    assert keys.authenticate(key)


def test_an_invalid_file_prevents_the_start(path):
    with pytest.raises(InvalidInput, match="cannot be read"):
        ApiKeys(ServeSettings(keys_file=path))
    path.write_text("[]")
    with pytest.raises(InvalidInput, match="cannot be read"):
        ApiKeys(ServeSettings(keys_file=path))


def test_each_key_has_its_own_rate_and_gets_the_time_to_wait(path, clock):
    slow, quick = made(path, "slow", rate=2), made(path, "quick", rate=100)
    keys = ApiKeys(ServeSettings(keys_file=path), clock=clock)
    for _ in range(4):
        keys.authenticate(slow)
    with pytest.raises(RateLimited, match="More than 2 requests") as refused:
        keys.authenticate(slow)
    assert refused.value.retry_after_s == pytest.approx(0.5)
    keys.authenticate(quick)
    clock.now += 0.5
    keys.authenticate(slow)
    with pytest.raises(RateLimited):
        keys.authenticate(slow)


def test_without_keys_all_callers_share_the_default_rate(clock):
    keys = ApiKeys(ServeSettings(rate_per_second=1), clock=clock)
    keys.authenticate(None)
    keys.authenticate(None)
    with pytest.raises(RateLimited):
        keys.authenticate(None)


def test_a_name_is_taken_once_and_an_unknown_one_cannot_be_revoked(path):
    made(path)
    with pytest.raises(InvalidInput, match="already"):
        KeyFile.read(path).with_key("agent", None, 0)
    with pytest.raises(NotFound, match="nobody"):
        KeyFile.read(path).without("nobody")


def test_a_write_that_fails_leaves_the_file_as_it_was(path, monkeypatch):
    made(path)
    before = path.read_text()

    def full(_):
        raise OSError("full")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="full"):
        KeyFile().write(path)
    assert path.read_text() == before
    assert json.loads(before)
    assert list(path.parent.iterdir()) == [path]


def test_keys_of_one_name_have_a_rate_each(path, clock):
    """The first key of the settings is named `key-1`, and so may one of the file be."""
    in_file = made(path, "key-1")
    keys = ApiKeys(ServeSettings(api_keys=("a-key-of-settings",), keys_file=path, rate_per_second=0.5), clock=clock)
    for key in (in_file, "Bearer a-key-of-settings"):
        assert keys.authenticate(key)
        with pytest.raises(RateLimited):
            keys.authenticate(key)


def test_a_batch_counts_as_its_queries(clock):
    keys = ApiKeys(ServeSettings(rate_per_second=2.0), clock=clock)
    keys.authenticate(None).count_queries(9)
    with pytest.raises(RateLimited) as limited:
        keys.authenticate(None)
    assert limited.value.retry_after_s == pytest.approx((1 - (4 - 9)) / 2)
    clock.now += 3
    assert keys.authenticate(None)
