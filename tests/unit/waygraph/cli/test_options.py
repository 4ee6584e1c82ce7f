"""Options of commands become settings or are refused with one message, and so do files with sessions."""

import json
import os
import stat
import time

import pytest
import typer

from waygraph.cli import main
from waygraph.cli.app import command
from waygraph.cli.commands import login
from waygraph.cli.option_values import parse_basic_auth, parse_duration, parse_headers, parse_scope_hosts, parse_size
from waygraph.cli.options import settings_from_options
from waygraph.core.errors import BrowserMissing, InvalidInput
from waygraph.core.settings import ExploreSettings, Settings
from waygraph.pipeline.explore.session.storage_state import read_storage_state
from waygraph.pipeline.jobs.sites.preflight import check_scope


@pytest.mark.parametrize(
    ("text", "size"), [("1000", 1000), ("500M", 500 * 2**20), ("2g", 2 * 2**30), ("1.5K", 1536), ("1 GiB", 2**30)]
)
def test_sizes_have_units(text, size):
    assert parse_size(text) == size


@pytest.mark.parametrize("text", ["", "0", "-1", "lots", "5X", "M"])
def test_malformed_sizes_are_refused(text):
    with pytest.raises(typer.BadParameter, match="is not a size"):
        parse_size(text)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90s", 90), ("10m", 600), ("1.5h", 5_400), ("36h", 129_600), ("7d", 604_800), ("2W", 1_209_600)],
)
def test_durations_have_units(text, seconds):
    assert parse_duration(text).total_seconds() == seconds


@pytest.mark.parametrize("text", ["", "10", "soon", "-1d", "999999999w"])
def test_malformed_durations_are_refused(text):
    with pytest.raises(typer.BadParameter, match="is not a duration"):
        parse_duration(text)


def test_an_option_overrides_the_setting_of_the_same_name_in_the_given_sections(monkeypatch):
    monkeypatch.setenv("WAYGRAPH_EXPLORE__DEPTH", "7")
    monkeypatch.setenv("WAYGRAPH_ENCODE__THREADS", "3")
    settings = settings_from_options({"store": "s", "depth": None, "max_states": 9, "device": "x"}, "explore")
    assert (settings.store, settings.explore.depth, settings.explore.max_states) == ("s", 7, 9)
    assert (settings.encode.threads, settings.encode.device) == (3, Settings().encode.device)


#: Options of commands that are no settings, or that are parsed before they become some.
OWN = {
    "index": {
        "urls", "sites", "preset", "placeholder", "basic_auth_file", "header", "viewport", "explain_skips", "as_json"
    },
    "refresh": {"sites", "every", "older_than", "budget", "basic_auth_file", "header", "as_json"},
    "reencode": {"sites", "every", "as_json"},
    "serve": {"as_json"},
}  # fmt: skip
SECTIONS = {
    "index": ("explore", "capture", "encode", "jobs"),
    "refresh": ("explore", "encode", "jobs", "refresh"),
    "reencode": ("explore", "encode", "jobs"),
    "serve": ("serve",),
}


@pytest.mark.parametrize("name", OWN)
def test_all_other_options_have_the_name_of_exactly_one_setting(name):
    options = {parameter.name for parameter in command().commands[name].params} - OWN[name] - {"help", "store"}
    sections = [type(getattr(Settings(), section)).model_fields for section in SECTIONS[name]]
    assert options
    assert {option: sum(option in fields for fields in sections) for option in options} == dict.fromkeys(options, 1)


def test_headers_come_from_options_and_files(tmp_path):
    file = tmp_path / "headers"
    file.write_text("X-One: 1\n\nX-Two:2\n")
    assert parse_headers(["Accept: a:b", f"@{file}"]) == {"Accept": "a:b", "X-One": "1", "X-Two": "2"}
    assert parse_headers(None) is None


def test_a_malformed_header_is_refused_without_being_repeated(tmp_path):
    file = tmp_path / "headers"
    file.write_text("X-One: 1\nhunter22\n")
    for given, where in ((["hunter22"], "the value"), ([f"@{file}"], "line 2")):
        with pytest.raises(InvalidInput, match=where) as raised:
            parse_headers(given)
        assert "hunter22" not in str(raised.value)
    with pytest.raises(InvalidInput, match="cannot be read"):
        parse_headers([f"@{tmp_path}/none"])


def test_a_password_comes_from_the_option_or_from_a_file_and_not_from_both(tmp_path):
    file = tmp_path / "auth"
    file.write_text("ann:pass:word\n")
    assert parse_basic_auth("ann:", None) == "ann:"
    assert parse_basic_auth(None, file) == "ann:pass:word"
    assert parse_basic_auth(None, None) is None
    with pytest.raises(InvalidInput, match="Both"):
        parse_basic_auth("a:b", file)
    file.write_text("hunter22\n")
    for given in ((None, file), ("hunter22", None)):
        with pytest.raises(InvalidInput, match="user:password") as raised:
            parse_basic_auth(*given)
        assert "hunter22" not in str(raised.value)


def test_scope_hosts_are_site_keys_without_a_path():
    assert parse_scope_hosts(["B.example", "https://c.example:443/", "b.example"]) == ["b.example", "c.example"]
    for text in ("https://b.example/path", "b.example?x", "not a host"):
        with pytest.raises((InvalidInput, typer.BadParameter)):
            parse_scope_hosts([text])


def test_scopes_that_contradict_the_start_urls_are_refused():
    check_scope(["a.example"], ExploreSettings(scope_hosts=("b.example",)))
    check_scope(["a.example.com", "b.example.org"], ExploreSettings(scope="domain"))
    with pytest.raises(InvalidInput, match="a part of each of 2 sites"):
        check_scope(["a.example", "c.example"], ExploreSettings(scope_hosts=("b.example",)))
    with pytest.raises(InvalidInput, match="are one site"):
        check_scope(["a.example.com", "b.example.com"], ExploreSettings(scope="domain"))
    with pytest.raises(InvalidInput, match="no registrable domain"):
        check_scope(["127.0.0.1:8000"], ExploreSettings(scope="domain"))


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--contact", "me"], "contact"),
        (["--proxy", "nowhere"], "proxy"),
        (["--header", "Host: x"], "set by the browser"),
        (["--max-bytes", "lots"], "--max-bytes"),
        (["--delay", "-1"], "--delay"),
        (["--guard", "off"], "'--guard': 'off'"),
        (["--scope", "domain"], "no registrable domain"),
        (["--basic-auth", "x"], "user:password"),
        (["--storage-state", "/no/such/file"], "no file"),
        (["--rules", __file__], "rules file"),
    ],
)
def test_invalid_options_fail_before_anything_slow_starts(capsys, words, says):
    assert main(["index", "http://127.0.0.1:1/", *words]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert says in said.err
    assert said.err.count("error:") == 1


def test_a_start_url_with_a_password_is_refused_without_being_repeated(capsys):
    assert main(["index", "https://ann:hunter22@shop.example/", "--json"]) == 2
    said = capsys.readouterr()
    assert "hunter22" not in said.out + said.err
    assert "--basic-auth" in json.loads(said.out)["error"]["hint"]


# ---- saved sessions --------------------------------------------------------------------------------------------------


def cookie(domain="shop.example.com", expires=-1.0):
    return {"name": "sid", "value": "hunter22", "domain": domain, "path": "/", "expires": expires}


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("{", "not JSON in line 1"),
        ("\xff", "not JSON"),
        ("[]", "neither cookies nor origins"),
        ('{"a": 1}', "neither cookies nor origins"),
        ('{"cookies": [1]}', "not in Playwright's format"),
        ('{"cookies": [{"name": "hunter22"}]}', "not in Playwright's format"),
        (json.dumps({"cookies": [cookie() | {"sameSite": "no_restriction"}]}), r"at 'cookies\.0\.sameSite'"),
        (json.dumps({"cookies": [cookie(expires="hunter22")]}), r"at 'cookies\.0\.expires"),
        ('{"origins": [{"origin": "http://[127.0.0.1", "localStorage": []}]}', r"at 'origins\.0\.origin'"),
        ('{"origins": [{"origin": "shop", "localStorage": []}]}', r"at 'origins\.0\.origin'"),
        (
            '{"origins": [{"origin": "http://x", "localStorage": [{"value": "hunter22"}]}]}',
            "not in Playwright's format",
        ),
        ('{"cookies": [], "origins": []}', "is empty"),
        (json.dumps({"cookies": [cookie("other.test")]}), "belongs to other.test, not to shop.example.com"),
        (json.dumps({"cookies": [cookie(expires=1_000.0)]}), "has expired"),
    ],
)
def test_an_unusable_session_gives_one_message_without_its_contents(tmp_path, content, says):
    file = tmp_path / "state.json"
    file.write_bytes(content.encode("latin-1"))
    with pytest.raises(InvalidInput, match=says) as raised:
        read_storage_state(file, "shop.example.com")
    assert "hunter22" not in str(raised.value)
    assert raised.value.hint


def test_a_session_of_the_site_or_of_its_domain_is_accepted(tmp_path):
    file = tmp_path / "state.json"
    later = time.time() + 1_000
    for own in (cookie(), cookie(".example.com"), cookie("login.example.com", later)):
        file.write_text(json.dumps({"cookies": [own, cookie("ads.test", 1_000.0)]}))
        assert read_storage_state(file, "shop.example.com")["cookies"][0] == own
    file.write_text(json.dumps({"origins": [{"origin": "http://127.0.0.1:8000", "localStorage": []}]}))
    assert read_storage_state(file, "127.0.0.1:8000") is not None
    assert read_storage_state(None, "x") is None
    with pytest.raises(InvalidInput, match="cannot be read"):
        read_storage_state(tmp_path, "x")


# ---- waygraph login --------------------------------------------------------------------------------------------------


def test_a_session_file_is_readable_by_its_owner_only_at_any_moment(tmp_path, monkeypatch):
    modes = []
    write = os.fsync

    def record_mode(handle):
        modes.append(stat.S_IMODE(os.fstat(handle).st_mode))
        write(handle)

    monkeypatch.setattr(os, "fsync", record_mode)
    before = os.umask(0)
    try:
        file = tmp_path / "state.json"
        file.write_text("old, and readable by all")
        login.save_private(file, b"secret")
    finally:
        os.umask(before)
    assert modes == [0o600]
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert file.read_bytes() == b"secret"
    assert [path.name for path in tmp_path.iterdir()] == ["state.json"]


def test_a_session_that_cannot_be_written_gives_one_message(tmp_path):
    with pytest.raises(InvalidInput, match="Cannot write"):
        login.save_private(tmp_path / "none" / "state.json", b"")


def test_login_without_a_display_fails_with_the_reason(capsys, monkeypatch):
    monkeypatch.delenv("DISPLAY", raising=False)
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    assert main(["login", "http://127.0.0.1:1/"]) == 6
    assert "DISPLAY" in capsys.readouterr().err


def test_login_without_a_headed_browser_says_which_to_install(capsys, monkeypatch):
    def missing(*_, **__):
        raise BrowserMissing("No Chromium browser was found.")

    monkeypatch.setenv("DISPLAY", ":99")
    monkeypatch.setattr("waygraph.pipeline.browser.process.find.find_browser", missing)
    assert main(["login", "http://127.0.0.1:1/"]) == 6
    assert "playwright install chromium`" in capsys.readouterr().err
