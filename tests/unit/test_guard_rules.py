"""Which requests by POST and which WebSocket messages only read, by our rules and by the user's."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.browser.guard import GuardRules, Judge, Sent
from waygraph.errors import InvalidInput

RULES = GuardRules()
JSON = {"content-type": "application/json"}


def reads(url, body="", headers=JSON, method="POST"):
    text = body if isinstance(body, str) else json.dumps(body)
    return not Judge("guard", RULES).may_change(Sent(method, url, headers, text))


@pytest.mark.parametrize(
    "body",
    [
        {"query": "{ a }"},
        {"query": "query Q($x: ID) { a(id: $x) { b } }", "variables": {"x": 1}, "operationName": "Q"},
        {"query": '# mutation\nquery { a(text: "mutation { b }") }'},
        [{"query": "{ a }"}, {"query": "query { b }"}],
        {"query": "query A { a } mutation B { b }", "operationName": "A"},
        {"query": "fragment F on T { a } query Q { ...F }"},
    ],
)  # fmt: skip
def test_graphql_queries_pass(body):
    assert reads("https://x.example/graphql", body)


@pytest.mark.parametrize(
    "body",
    [
        {"query": "mutation { a }"},
        {"query": "subscription { a }"},
        {"query": "query A { a } mutation B { b }", "operationName": "B"},
        {"query": "query A { a } mutation B { b }"},
        [{"query": "{ a }"}, {"query": "mutation { b }"}],
        [],
        {"extensions": {"persistedQuery": {"sha256Hash": "abc"}}},
        {"query": ""},
        {"query": "{ a", "operationName": None},
        {"query": "fragment F on T { a }"},
        {"query": "{ a }", "operationName": "Missing"},
        {"query": "{ a }", "delete": True},
        {"query": "{" * 30_000},
        {"query": "{a" * 3_000 + "}" * 3_000},
        "{" * 5_000,
        "not json",
    ],
)
def test_everything_else_that_is_sent_to_graphql_is_stopped(body):
    assert not reads("https://x.example/graphql", body)


@pytest.mark.parametrize(
    ("url", "body"),
    [
        ("https://x.example/api/search?q=a", {"text": "shoes"}),
        ("https://es.example/index/_search", {"query": {"match_all": {}}}),
        ("https://a.algolia.example/1/indexes/*/queries", {"requests": []}),
        ("https://x.example/rpc", {"jsonrpc": "2.0", "method": "get_items", "id": 1}),
        (
            "https://x.example/rpc",
            [{"jsonrpc": "2.0", "method": "items.list"}, {"jsonrpc": "2.0", "method": "getUser"}],
        ),
        ("https://x.example/web", {"jsonrpc": "2.0", "method": "call", "params": {"method": "search_read"}}),
        ("https://login.example/oauth2/token", "grant_type=refresh_token&refresh_token=abc"),
        ("https://login.example/auth/v1/token?grant_type=refresh_token", {"refresh_token": "abc"}),
        ("https://x.example/api/auth/refresh", ""),
        ("https://x.example/socket.io/?EIO=4&transport=polling&sid=1", "40"),
    ],
)
def test_reads_by_post_that_are_known_by_their_address_or_body_pass(url, body):
    assert reads(url, body)


@pytest.mark.parametrize(
    ("url", "body"),
    [
        ("https://x.example/search/delete", "id=1"),
        ("https://x.example/research", ""),
        ("https://x.example/cart?next=/search", "add=1"),
        ("https://x.example/cart#/search", "add=1"),
        ("https://search.example/", "x"),
        ("https://x.example/query", "q=DROP TABLE users"),
        ("https://x.example/rpc", {"jsonrpc": "2.0", "method": "delete_item"}),
        ("https://x.example/rpc", {"jsonrpc": "2.0", "method": "getaway_book"}),
        ("https://x.example/rpc", {"jsonrpc": "2.0", "method": "findOneAndUpdate"}),
        ("https://x.example/rpc", [{"jsonrpc": "2.0", "method": "get_item"}, {"jsonrpc": "2.0", "method": "buy"}]),
        ("https://x.example/web", {"jsonrpc": "2.0", "method": "call", "params": {"method": "unlink"}}),
        ("https://login.example/oauth2/token", "grant_type=password&username=a"),
        ("https://x.example/socket.io/?EIO=4&transport=polling&sid=1", '42["buy",1]'),
        ("https://x.example/", ""),
    ],
)
def test_what_no_rule_knows_is_stopped(url, body):
    assert not reads(url, body)


def test_only_get_head_and_options_need_no_rule_and_overrides_need_one():
    for method in ("PUT", "DELETE", "PATCH", "TRACE", "CONNECT", "get"):
        assert not reads("https://x.example/search", "", method=method)
    for method in ("GET", "HEAD", "OPTIONS"):
        assert reads("https://x.example/anything", method=method)
        assert not reads("https://x.example/a", headers={"x-http-method-override": "DELETE"}, method=method)
        assert not reads("https://x.example/a?x=1&_method=delete", method=method)
        assert reads("https://x.example/a?my_method=delete", method=method)
    assert not reads("https://x.example/search", "", headers={"x-http-method-override": "DELETE"})
    assert not reads("https://x.example/graphql?query=mutation%20%7Ba%7D", method="GET")


def test_strict_lets_nothing_but_safe_methods_pass():
    strict = Judge("strict", RULES)
    assert strict.may_change(Sent("POST", "https://x.example/graphql", JSON, '{"query": "{ a }"}'))
    assert strict.message_may_change("wss://x.example/", "ping")
    assert not strict.may_change(Sent("GET", "https://x.example/", {}, None))


def test_a_body_that_cannot_be_read_matches_no_rule_that_asks_for_it():
    assert Judge().may_change(Sent("POST", "https://x.example/graphql", JSON, None))
    assert Judge().may_change(Sent("POST", "https://x.example/query", JSON, None))


@pytest.mark.parametrize(
    "text",
    [
        '{"type":"connection_init"}',
        '{"type":"connection_init","payload":{}}',
        '{"id":"1","type":"subscribe","payload":{"query":"subscription { a }"}}',
        '{"id":"1","type":"start","payload":{"query":"{ a }"}}',
        '{"id":"1","type":"complete"}',
        "2", "2probe", "3", "5", "40", "40/chat,", '40{"token":"x"}',
        '[null,"7","phoenix","heartbeat",{}]',
        '["3","3","room:lobby","phx_join",{}]',
        '{"topic":"phoenix","event":"heartbeat","payload":{},"ref":"1"}',
        '{"command":"subscribe","identifier":"{}"}',
        '{"protocol":"json","version":1}\x1e',
        '["{\\"msg\\":\\"sub\\",\\"id\\":\\"1\\"}"]',
        "SUBSCRIBE\nid:0\ndestination:/topic\n\n\x00",
        "ping", '{"type":"ping"}', "",
    ],
)  # fmt: skip
def test_messages_that_subscribe_or_keep_alive_pass(text):
    assert RULES.why_message("wss://x.example/live", text)


@pytest.mark.parametrize(
    "text",
    [
        '{"id":"1","type":"subscribe","payload":{"query":"mutation { a }"}}',
        '{"type":"connection_init","payload":{"delete":1}}',
        '42["buy",1]', "4hello", "45",
        '["3","3","room:lobby","delete",{}]',
        '{"command":"message","data":"x"}',
        '{"type":1,"target":"Buy","arguments":[]}\x1e',
        '["{\\"msg\\":\\"method\\",\\"method\\":\\"buy\\"}"]',
        "SEND\ndestination:/buy\n\nx\x00",
        "buy", '{"type":"ping","and":"buy"}', "ping buy",
    ],
)  # fmt: skip
def test_other_messages_are_stopped(text):
    assert RULES.why_message("wss://x.example/live", text) is None


@given(st.text(max_size=200))
def test_no_text_upsets_the_rules(text):
    reads(f"https://x.example/{text}", text)
    RULES.why_message("wss://x.example/", text)


def rules_of(tmp_path, text, site="shop.example"):
    file = tmp_path / "rules.yaml"
    file.write_text(text)
    return GuardRules.read(file, site)


def test_the_users_rules_hold_for_their_site_and_for_forms_as_well(tmp_path):
    text = """sites:
      - host: "*.example"
        block: [{name: x, text: y}]
        reads:
          - {name: prices, url: "/api/prices$", body: '"list"'}
          - {url: "/filter$"}
          - {method: SEND, url: "^wss://", body: "^watch "}
    """
    rules = rules_of(tmp_path, text)
    assert rules.why_read(Sent("POST", "https://shop.example/api/prices", {}, '{"list": 1}')) == "prices"
    assert rules.why_read(Sent("POST", "https://shop.example/api/prices", {}, '{"set": 1}')) is None
    assert rules.why_read(Sent("POST", "https://shop.example/filter", {}, None), document=True)
    assert rules.why_read(Sent("POST", "https://shop.example/search", {}, "q"), document=True) is None
    assert rules.why_message("wss://shop.example/", "watch 1")
    assert rules.why_message("wss://shop.example/", "buy 1") is None
    assert rules_of(tmp_path, text, "other.test").why_read(Sent("POST", "https://other.test/filter", {}, "")) is None


@pytest.mark.parametrize(
    "allow",
    [
        '{url: "("}',
        '{url: "(?=a)b"}',
        '{url: "(a)\\\\1"}',
        "{url: 7}",
        "{url: x, method: GET}",
        "{ulr: x}",
        '{url: "' + "a" * 3_000 + '"}',
        "7",
    ],
)  # fmt: skip
def test_rules_that_make_no_sense_are_one_clear_message(tmp_path, allow):
    with pytest.raises(InvalidInput) as raised:
        rules_of(tmp_path, f'sites: [{{host: "*", reads: [{allow}]}}]')
    assert "rules.yaml" in raised.value.message


def test_an_expression_that_backtracks_elsewhere_takes_no_time_here(tmp_path):
    rules = rules_of(tmp_path, 'sites: [{host: "*", reads: [{url: "(a+)+$", body: "^(([a-z])+.)+[A-Z]([a-z])+$"}]}]')
    assert rules.why_read(Sent("POST", "https://x.example/" + "a" * 50_000 + "!", {}, "a" * 100_000)) is None
