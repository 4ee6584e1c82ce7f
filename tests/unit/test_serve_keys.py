"""Who may ask: keys from the settings and from a file that changes under a running service, their sites and rates."""

import json
import os
import stat

import pytest

from serve.keys import ANYBODY, ApiKeys, Caller
from waygraph.errors import InvalidInput, NotFound, RateLimited, Unauthorized
from waygraph.key_file import KeyFile, digest_of
from waygraph.settings import ServeSettings


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


def test_without_keys_anybody_may_ask():
    keys = ApiKeys(ServeSettings())
    assert not keys
    assert keys.check(None) == ANYBODY
    assert ANYBODY.may_see("any.example")


@pytest.mark.parametrize(
    "header", [None, "", "Bearer", "Bearer ", "Bearer wrong", "Basic secret", "secret", "Bearer secreT"]
)
def test_with_keys_nobody_else_may(header):
    keys = ApiKeys(ServeSettings(api_keys=("secret", "other")))
    assert keys
    with pytest.raises(Unauthorized):
        keys.check(header)
    assert keys.check("bearer  secret ").sites is None


def test_a_key_of_the_file_has_its_sites(path, clock):
    key = made(path, sites=("shop.example",))
    caller = ApiKeys(ServeSettings(keys_file=path), clock=clock).check(key)
    assert caller == Caller("agent", frozenset({"shop.example"}))
    caller.check("shop.example")
    with pytest.raises(NotFound, match=r"'bank\.example' is not mapped"):
        caller.check("bank.example")


def test_the_file_holds_no_key_and_is_its_owners_alone(path):
    key = made(path).removeprefix("Bearer ")
    assert key.startswith("wg_")
    assert len(key) > 40
    assert key not in path.read_text()
    assert digest_of(key) in path.read_text()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_keys_are_added_and_revoked_without_a_restart(path, clock):
    first = made(path)
    keys = ApiKeys(ServeSettings(keys_file=path), clock=clock)
    second = made(path, "second")
    with pytest.raises(Unauthorized):
        keys.check(second)  # within the second nobody looks again
    clock.now += 2
    assert keys.check(second).name == "second"
    KeyFile.read(path).without("agent").write(path)
    clock.now += 2
    with pytest.raises(Unauthorized):
        keys.check(first)
    KeyFile().write(path)
    clock.now += 2
    assert keys
    with pytest.raises(Unauthorized):
        keys.check(second)


@pytest.mark.parametrize("damage", ["not json", '{"keys": [{"name": "x"}]}', '{"others": []}'])
def test_a_file_that_breaks_leaves_the_keys_as_they_were_and_is_said(path, clock, damage, caplog):
    key = made(path)
    keys = ApiKeys(ServeSettings(keys_file=path), clock=clock)
    path.write_text(damage)
    clock.now += 2
    assert keys.check(key).name == "agent"
    assert "stay as they were" in caplog.text
    path.unlink()
    clock.now += 2
    assert keys.check(key).name == "agent"


def test_a_file_that_is_broken_from_the_start_keeps_the_service_from_starting(path):
    with pytest.raises(InvalidInput, match="cannot be read"):
        ApiKeys(ServeSettings(keys_file=path))
    path.write_text("[]")
    with pytest.raises(InvalidInput, match="cannot be read"):
        ApiKeys(ServeSettings(keys_file=path))


def test_each_key_has_its_own_rate_and_is_told_when_to_come_again(path, clock):
    slow, quick = made(path, "slow", rate=2), made(path, "quick", rate=100)
    keys = ApiKeys(ServeSettings(keys_file=path), clock=clock)
    for _ in range(4):
        keys.check(slow)
    with pytest.raises(RateLimited, match="More than 2 requests") as refused:
        keys.check(slow)
    assert refused.value.after_s == pytest.approx(0.5)
    keys.check(quick)
    clock.now += 0.5
    keys.check(slow)
    with pytest.raises(RateLimited):
        keys.check(slow)


def test_the_default_rate_holds_for_everybody_together_without_keys(clock):
    keys = ApiKeys(ServeSettings(rate_per_second=1), clock=clock)
    keys.check(None)
    keys.check(None)
    with pytest.raises(RateLimited):
        keys.check(None)


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
