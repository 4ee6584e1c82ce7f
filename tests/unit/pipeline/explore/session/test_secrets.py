"""Removal of secrets from everything that is stored, published or logged."""

import io
import json
import logging
import pickle
from dataclasses import replace
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from waygraph.core.errors import InvalidInput
from waygraph.core.settings import ExploreSettings, Settings
from waygraph.core.urls import mask_secrets, parse_start_url
from waygraph.index.graph import Action, BlockedRequest, Box, Edge, Segment, Tool, tool_id
from waygraph.pipeline.browser.page.snapshot import PageTool, Snapshot
from waygraph.pipeline.explore.exploration import terms
from waygraph.pipeline.explore.records.capture import Failure, Skip
from waygraph.pipeline.explore.session.secrets import RedactingFilter, Redactor, redacted_logs

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
REDACTOR = Redactor.from_settings(EXPLORE, STATE)


@pytest.mark.parametrize("secret", SECRETS)
def test_known_secrets_are_removed_from_texts_urls_dom_and_messages(secret):
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
def test_parameters_with_secret_names_are_masked_in_urls(url, masked):
    assert mask_secrets(url) == (masked or url)


@given(st.text(st.sampled_from("ab?&=#/;@:%"), max_size=30))
def test_masking_twice_is_masking_once(text):
    once = mask_secrets(f"http://{text}")
    assert mask_secrets(once) == once


def test_values_of_password_fields_are_masked_in_the_dom_and_nothing_else():
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


def test_secrets_are_removed_from_log_records():
    record = logging.LogRecord("a", logging.INFO, "", 0, "loading %s", ("http://x/s3cret-pw?token=1",), None)
    assert RedactingFilter(REDACTOR).filter(record) is True
    assert record.getMessage() == "loading http://x/***?token=***"


def test_logs_of_an_exploration_contain_no_secrets_in_messages_and_tracebacks():
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


def test_settings_hide_secrets_when_printed_and_keep_them_when_pickled():
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
def test_error_messages_do_not_repeat_a_malformed_secret(wrong):
    with pytest.raises(ValidationError) as raised:
        ExploreSettings(**wrong)
    assert "hunter22" not in str(raised.value)


@pytest.mark.parametrize(
    "text", ["https://ann:hunter22@x/", "ann:hunter22@x", "http://hunter22@x/a", "//ann:hunter22@x"]
)
def test_start_urls_with_credentials_are_rejected_without_repeating_them(text):
    with pytest.raises(InvalidInput) as raised:
        parse_start_url(text)
    assert "hunter22" not in str(raised.value)
    assert "--basic-auth" in raised.value.hint


def test_an_at_sign_after_the_host_is_no_credential():
    assert parse_start_url("https://x/@ann") == "https://x/@ann"
    assert parse_start_url("x/?q=a@b") == "https://x/?q=a@b"


def test_a_run_is_resumed_with_another_session_but_not_without_one(tmp_path):
    def of(**explore) -> object:
        return terms(SimpleNamespace(url="http://x/"), Settings(explore=ExploreSettings(**explore)))

    session, anew = (of(storage_state=tmp_path / name, headers={"X-Key": name}) for name in ("old", "new"))
    assert session == anew
    assert session != of(storage_state=tmp_path / "old") != of() != of(basic_auth="ann:s3cret-pw")
    assert "s3cret-pw" not in json.dumps(of(basic_auth="ann:s3cret-pw"))


def test_secrets_of_an_earlier_session_are_removed_where_its_snapshots_show_them():
    link = SimpleNamespace(action=Action("click", name="Go", target="http://x/?k=old-key-222"))
    text = Segment("Signed in with old-cookie-11", "text", Box(0, 0, 1, 1))
    seen = Snapshot("", "http://x/", "http://x/", "T", "text/html", 200, (), (link,), (text,), capped=False, opened=0)
    seen = replace(seen, hidden=(Segment("Your code is hidden-code-44", "hidden", text.box),))
    shown = Redactor(("old-cookie-11", "old-key-222", "not-shown-33", "hidden-code-44")).secrets_in(seen)
    assert shown == {"old-cookie-11", "old-key-222", "hidden-code-44"}
    assert REDACTOR.with_secrets(shown).text("old-cookie-11 and cookie-value-99") == "*** and ***"


SECRET_SCHEMA = {"type": "object", "properties": {"tok-1234567890": {"enum": ["a", 'say "s3cret-pw"', 1]}}}


def test_known_secrets_are_removed_from_all_texts_of_a_tool():
    form = Action(kind="submit", role="form", name="of s3cret-pw")
    tool = Tool(
        "id", "n", "T cookie-value-99", "see http://x/?token=abc", SECRET_SCHEMA, "form", ("a",), "http://x",
        element=form, target="http://x/stored-value-77",
    )  # fmt: skip
    redacted = REDACTOR.tool(tool)
    assert not [secret for secret in (*SECRETS, "abc") if secret in repr(redacted)]
    assert redacted.schema == {"type": "object", "properties": {"***": {"enum": ["a", 'say "***"', 1]}}}
    assert redacted.id == tool_id(redacted)


def test_secrets_in_the_schema_of_a_tool_are_secrets_of_the_snapshot():
    secrets = Redactor(('a"b-secret', "tok-1234567890"))
    schema = json.dumps({"title": 'a"b-secret', "required": ["tok-1234567890"]})
    tool = PageTool("n", "", "", schema, "script", "http://x")
    seen = Snapshot("", "", "", "", "", 200, (), (), (), capped=False, opened=0, tools=(tool,))
    assert secrets.secrets_in(seen) == set(secrets.secrets)
