"""Options of `waygraph index` mean what they say, or are refused with one clear message; files of sessions as well."""

import json
import os
import stat
import time

import pytest

from pipeline.explore.storage import read_storage_state
from waygraph.cli import login, main
from waygraph.cli.index_options import (
    check_scope,
    parse_basic_auth,
    parse_headers,
    parse_scope_hosts,
    parse_size,
)
from waygraph.errors import BrowserMissing, InvalidInput
from waygraph.settings import ExploreSettings


@pytest.mark.parametrize(
    ("text", "size"), [("1000", 1000), ("500M", 500 * 2**20), ("2g", 2 * 2**30), ("1.5K", 1536), ("1 GiB", 2**30)]
)
def test_sizes_have_units(text, size):
    assert parse_size(text, "--max-bytes") == size


@pytest.mark.parametrize("text", ["", "0", "-1", "lots", "5X", "M"])
def test_what_is_no_size_is_refused(text):
    with pytest.raises(InvalidInput, match="--max-bytes"):
        parse_size(text, "--max-bytes")


def test_headers_come_from_options_and_files(tmp_path):
    file = tmp_path / "headers"
    file.write_text("X-One: 1\n\nX-Two:2\n")
    assert parse_headers(["Accept: a:b", f"@{file}"]) == {"Accept": "a:b", "X-One": "1", "X-Two": "2"}
    assert parse_headers(None) is None


def test_a_malformed_header_is_refused_without_being_repeated(tmp_path):
    file = tmp_path / "headers"
    file.write_text("X-One: 1\nhunter22\n")
    for given, where in ((["hunter22"], "what was given"), ([f"@{file}"], "line 2")):
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


def test_hosts_of_the_scope_are_keys_and_no_pages():
    assert parse_scope_hosts(["B.example", "https://c.example:443/", "b.example"]) == ("b.example", "c.example")
    for text in ("https://b.example/path", "b.example?x", "not a host"):
        with pytest.raises(InvalidInput):
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
        (["--header", "Host: x"], "browser's own"),
        (["--max-bytes", "lots"], "--max-bytes"),
        (["--delay", "-1"], "--delay"),
        (["--guard", "off"], "--guard"),
        (["--scope", "domain"], "no registrable domain"),
        (["--basic-auth", "x"], "user:password"),
        (["--storage-state", "/no/such/file"], "no file"),
        (["--rules", __file__], "rules file"),
    ],
)
def test_what_is_wrong_is_said_before_anything_slow_starts(capsys, words, says):
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
        ('{"cookies": [1]}', "not written as Playwright does"),
        ('{"cookies": [{"name": "hunter22"}]}', "not written as Playwright does"),
        (json.dumps({"cookies": [cookie() | {"sameSite": "no_restriction"}]}), r"at 'cookies\.0\.sameSite'"),
        (json.dumps({"cookies": [cookie(expires="hunter22")]}), r"at 'cookies\.0\.expires"),
        ('{"origins": [{"origin": "http://[127.0.0.1", "localStorage": []}]}', r"at 'origins\.0\.origin'"),
        ('{"origins": [{"origin": "shop", "localStorage": []}]}', r"at 'origins\.0\.origin'"),
        ('{"origins": [{"origin": "http://x", "localStorage": [{"value": "hunter22"}]}]}', "not written as"),
        ('{"cookies": [], "origins": []}', "is empty"),
        (json.dumps({"cookies": [cookie("other.test")]}), "belongs to other.test, not to shop.example.com"),
        (json.dumps({"cookies": [cookie(expires=1_000.0)]}), "has expired"),
    ],
)
def test_a_session_that_is_no_good_is_one_clear_message_without_its_contents(tmp_path, content, says):
    file = tmp_path / "state.json"
    file.write_bytes(content.encode("latin-1"))
    with pytest.raises(InvalidInput, match=says) as raised:
        read_storage_state(file, "shop.example.com")
    assert "hunter22" not in str(raised.value)
    assert raised.value.hint


def test_a_session_of_the_site_or_of_its_domain_is_taken(tmp_path):
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


def test_a_session_is_written_for_its_owner_alone_from_the_first_byte_on(tmp_path, monkeypatch):
    modes = []
    write = os.fsync

    def look(handle):
        modes.append(stat.S_IMODE(os.fstat(handle).st_mode))
        write(handle)

    monkeypatch.setattr(os, "fsync", look)
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


def test_a_session_that_cannot_be_written_is_one_clear_message(tmp_path):
    with pytest.raises(InvalidInput, match="Cannot write"):
        login.save_private(tmp_path / "none" / "state.json", b"")


def test_without_a_screen_login_says_so(capsys, monkeypatch):
    monkeypatch.delenv("DISPLAY", raising=False)
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    assert main(["login", "http://127.0.0.1:1/"]) == 6
    assert "DISPLAY" in capsys.readouterr().err


def test_without_a_browser_that_shows_windows_login_says_which_to_install(capsys, monkeypatch):
    def missing(*_, **__):
        raise BrowserMissing("No Chromium browser was found.")

    monkeypatch.setenv("DISPLAY", ":99")
    monkeypatch.setattr("pipeline.browser.find.find_browser", missing)
    assert main(["login", "http://127.0.0.1:1/"]) == 6
    assert "playwright install chromium`" in capsys.readouterr().err
