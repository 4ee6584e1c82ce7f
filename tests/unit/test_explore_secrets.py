"""What is taken out of everything that is written down?"""

import io
import json
import logging
import pickle
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from index.graph import Action, BlockedRequest, Box, Edge, Segment, mask_secrets, parse_start_url
from pipeline.browser.snapshot import Snapshot
from pipeline.explore import terms
from pipeline.explore.capture import Failure, Skip
from pipeline.explore.secrets import RedactingFilter, Redactor, redacted_logs
from waygraph.errors import InvalidInput
from waygraph.settings import ExploreSettings, Settings

SECRETS = ("s3cret-pw", "tok-1234567890", "proxy-pw-55", "cookie-value-99", "stored-value-77")
EXPLORE = ExploreSettings(
    basic_auth="ann:s3cret-pw",
    headers={"Authorization": "Bearer tok-1234567890"},
    proxy="http://p:proxy-pw-55@127.0.0.1:3128",
)
STATE = {
    "cookies": [{"name": "sid", "value": "cookie-value-99"}, {"name": "lang", "value": "en-US"}],
    "origins": [{"origin": "http://x", "localStorage": [{"name": "t", "value": "stored-value-77"}]}],
}
REDACTOR = Redactor.of(EXPLORE, STATE)


@pytest.mark.parametrize("secret", SECRETS)
def test_known_secrets_are_taken_out_of_texts_urls_dom_and_messages(secret):
    for taken in (
        REDACTOR.text(f"a {secret} b"),
        REDACTOR.url(f"http://x/{secret}?q={secret}"),
        REDACTOR.dom(f"<p data-x='{secret}'>{secret}</p>"),
        REDACTOR.message(f"GET http://x/?a={secret} failed"),
    ):
        assert secret not in taken
        assert "***" in taken
    assert REDACTOR.text("en-US is no secret") == "en-US is no secret"


def test_the_header_that_basic_authentication_makes_is_a_secret_as_well():
    assert REDACTOR.text("Basic YW5uOnMzY3JldC1wdw==") == "Basic ***"


@pytest.mark.parametrize(
    ("url", "masked"),
    [
        ("http://x/a?b=1", None),
        ("http://x/?access_token=abc&b=1", "http://x/?access_token=***&b=1"),
        ("http://x/#access_token=abc&type=bearer", "http://x/#access_token=***&type=bearer"),
        ("http://x/#/reset?token=abc", "http://x/#/reset?token=***"),
        ("http://x/cb?code=abc&state=1", "http://x/cb?code=***&state=1"),
        ("http://x/countries?code=fr", None),
        ("http://x/a;jsessionid=12AB?b=1", "http://x/a;jsessionid=***?b=1"),
        ("http://x/?PHPSESSID=abc", "http://x/?PHPSESSID=***"),
        ("http://ann:pw@x/", "http://***@x/"),
        ("http://x/?token=", None),
        ("http://x/?q=token", None),
        ("http://x/@ann?a=1", None),
    ],
)
def test_parameters_that_are_secrets_by_their_name_are_masked_in_urls(url, masked):
    assert mask_secrets(url) == (masked or url)


@given(st.text(st.sampled_from("ab?&=#/;@:%"), max_size=30))
def test_masking_twice_is_masking_once(text):
    once = mask_secrets(f"http://{text}")
    assert mask_secrets(once) == once


def test_what_was_typed_into_password_fields_is_blanked_in_the_dom_and_nothing_else():
    page = (
        '<input type="password" name=p value="hunter2"><input value=hunter2 type=password>'
        "<INPUT TYPE='PASSWORD' VALUE='hunter2'><input type=text value='kept'><p>password</p>"
    )
    taken = REDACTOR.dom(page)
    assert "hunter2" not in taken
    assert taken.count('"***"') == 3
    assert "<input type=text value='kept'><p>password</p>" in taken


def test_tokens_in_the_links_of_a_page_are_masked_as_they_are_in_urls():
    page = """<a href="/in?a=1&amp;access_token=hunter2#x">In</a><a href='?PHPSESSID=hunter2'>token=kept</a>"""
    taken = REDACTOR.dom(page)
    assert taken == """<a href="/in?a=1&amp;access_token=***#x">In</a><a href='?PHPSESSID=***'>token=kept</a>"""


def test_edges_skips_and_failures_keep_what_replay_needs_and_no_secret():
    action = Action("click", role="link", name="Go", xpath="/html/a", target="http://x/?access_token=abc")
    edge = REDACTOR.edge(
        Edge("a", "b", action, blocked=(BlockedRequest("POST", "http://x/?token=abc"),), dialogs=("alert: s3cret-pw",))
    )
    assert edge.action == Action("click", role="link", name="Go", xpath="/html/a")
    assert edge.blocked[0].url == "http://x/?token=***"
    assert edge.dialogs == ("alert: ***",)
    plain = Edge("a", "b", Action("click", role="link", name="Go", target="http://x/y?z=1"))
    assert REDACTOR.edge(plain) == plain
    skip = REDACTOR.skip(Skip("n", "external", 'click link "s3cret-pw"', "http://y/?sid=1", target="http://y/?sid=1"))
    assert "s3cret-pw" not in skip.element
    assert skip.detail == skip.target == "http://y/?sid=***"
    assert REDACTOR.failure(Failure("n", "click", "http://x/?jwt=ab: no")).reason == "http://x/?jwt=***: no"


def test_log_records_are_rewritten_and_kept():
    record = logging.LogRecord("a", logging.INFO, "", 0, "loading %s", ("http://x/s3cret-pw?token=1",), None)
    assert RedactingFilter(REDACTOR).filter(record) is True
    assert record.getMessage() == "loading http://x/***?token=***"


def test_what_is_logged_while_a_site_is_explored_holds_no_secret_not_even_in_tracebacks():
    written = io.StringIO()
    handler, log = logging.StreamHandler(written), logging.getLogger("waygraph.test")
    log.addHandler(handler)
    try:
        with redacted_logs(REDACTOR):
            try:
                int("cookie-value-99")
            except ValueError:
                log.exception("with %s", "s3cret-pw")
        log.warning("afterwards %s", "s3cret-pw")
    finally:
        log.removeHandler(handler)
    during, _, afterwards = written.getvalue().partition("afterwards ")
    assert "with ***" in during
    assert "with base 10: '***'" in during
    assert afterwards == "s3cret-pw\n"


def test_settings_show_no_secret_when_they_are_written_or_printed_and_keep_it_on_their_way_to_actors():
    settings = Settings(explore=EXPLORE)
    written = json.dumps(settings.model_dump(mode="json")) + repr(settings) + str(settings.explore)
    assert not any(secret in written for secret in SECRETS)
    arrived = pickle.loads(pickle.dumps(settings))  # noqa: S301 - our own
    assert arrived == settings
    assert arrived.explore.basic_auth.get_secret_value() == "ann:s3cret-pw"


def test_secrets_come_from_the_environment(monkeypatch):
    monkeypatch.setenv("WAYGRAPH_EXPLORE__BASIC_AUTH", "ann:pw")
    monkeypatch.setenv("WAYGRAPH_EXPLORE__HEADERS", '{"X-Key": "abc"}')
    explore = Settings().explore
    assert explore.basic_auth.get_secret_value() == "ann:pw"
    assert explore.headers["X-Key"].get_secret_value() == "abc"


@pytest.mark.parametrize(
    "wrong",
    [
        {"basic_auth": "hunter22"},
        {"basic_auth": ":hunter22"},
        {"headers": {"X": "hunter22\r\nY: 1"}},
        {"headers": {"A b": "hunter22"}},
        {"headers": {"Host": "hunter22"}},
        {"proxy": "hunter22"},
        {"proxy": "http://u:hunter22@host"},
        {"proxy": "ftp://u:hunter22@host:1"},
    ],
)
def test_what_is_wrong_with_a_secret_is_said_without_saying_it(wrong):
    with pytest.raises(ValidationError) as raised:
        ExploreSettings(**wrong)
    assert "hunter22" not in str(raised.value)


@pytest.mark.parametrize(
    "text", ["https://ann:hunter22@x/", "ann:hunter22@x", "http://hunter22@x/a", "//ann:hunter22@x"]
)
def test_start_urls_with_credentials_are_refused_without_being_repeated(text):
    with pytest.raises(InvalidInput) as raised:
        parse_start_url(text)
    assert "hunter22" not in str(raised.value)
    assert "--basic-auth" in raised.value.hint


def test_an_at_sign_behind_the_host_is_no_credential():
    assert parse_start_url("https://x/@ann") == "https://x/@ann"
    assert parse_start_url("x/?q=a@b") == "https://x/?q=a@b"


def test_a_run_is_gone_on_with_under_another_session_but_not_without_one(tmp_path):
    def of(**explore) -> object:
        return terms(SimpleNamespace(url="http://x/"), Settings(explore=ExploreSettings(**explore)))

    session, anew = (of(storage_state=tmp_path / name, headers={"X-Key": name}) for name in ("old", "new"))
    assert session == anew
    assert session != of(storage_state=tmp_path / "old") != of() != of(basic_auth="ann:s3cret-pw")
    assert "s3cret-pw" not in json.dumps(of(basic_auth="ann:s3cret-pw"))


def test_secrets_of_an_earlier_session_are_taken_out_where_its_looks_show_them():
    link = SimpleNamespace(action=Action("click", name="Go", target="http://x/?k=old-key-222"))
    text = Segment("Signed in with old-cookie-11", "text", Box(0, 0, 1, 1))
    seen = Snapshot("", "http://x/", "http://x/", "T", "text/html", 200, (), (link,), (text,), capped=False, opened=0)
    shown = Redactor(("old-cookie-11", "old-key-222", "not-shown-33")).shown_in(seen)
    assert shown == {"old-cookie-11", "old-key-222"}
    assert REDACTOR.also(shown).text("old-cookie-11 and cookie-value-99") == "*** and ***"
