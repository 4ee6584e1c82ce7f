"""Rules for POST requests and WebSocket messages that only read, built-in and by the user."""

import json
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from waygraph.core.errors import InvalidInput
from waygraph.pipeline.browser.guard import (
    GuardRules,
    OutgoingRequest,
    RequestPolicy,
    StateChangingUrls,
    websocket_message,
)

RULES = GuardRules()
JSON = {"content-type": "application/json"}


def reads(url, body="", headers=JSON, method="POST"):
    text = body if isinstance(body, str) else json.dumps(body)
    return not RequestPolicy("guard", RULES).may_change(OutgoingRequest(method, url, headers, text))


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
def test_other_requests_to_graphql_are_stopped(body):
    assert not reads("https://x.example/graphql", body)


@pytest.mark.parametrize(
    ("url", "body"),
    [
        ("https://x.example/api/search?q=a", {"text": "shoes"}),
        ("https://es.example/index/_search", {"query": {"match_all": {}}}),
        ("https://a.algolia.example/1/indexes/*/queries", {"requests": []}),
        (
            "https://a.algolia.example/1/indexes/*/queries?x-app=1",
            {"requests": [{"query": "lamp"}], "strategy": "none"},
        ),
        ("https://a.algolia.example/1/indexes/items/facets/brand/query", {"params": "q=lamp"}),
        ("https://x.example/api/search?q=delete", {"text": "how to remove an account"}),
        ("https://x.example/api/suggest", {"prefix": "sh"}),
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
        ("https://x.example/api/queries", {"name": "New query", "query": "select 1", "data_source_id": 1}),
        ("https://x.example/api/queries", {"requests": [], "name": "New query"}),
        ("https://x.example/api/queries", [{"requests": []}]),
        ("https://x.example/api/v1/forums/1/suggestions", {"title": "Dark mode"}),
        ("https://x.example/saved/search", {"name": "q"}),
        ("https://x.example/api/alerts/7/search", {"name": "q"}),
        ("https://x.example/api/item/delete/search", {}),
        ("https://x.example/api/delete-item/_query", {}),
        ("https://x.example/api/search?action=delete", {}),
        ("https://x.example/graphql/query", {"operationName": "DeleteItem", "variables": {"id": 1}}),
        ("https://x.example/v1/query", {"extensions": {"persistedQuery": {"sha256Hash": "ab"}}}),
        ("https://x.example/v1/search", {"extensions": {"persistedQuery": {"sha256Hash": "ab"}}}),
        ("https://x.example/query", {"doc_id": "123", "variables": {}}),
        ("http://[/search", ""),
    ],
)
def test_requests_without_a_matching_rule_are_stopped(url, body):
    assert not reads(url, body)


READING = """get getItems get_items items.list item/list Items:find listAll search_read name_search web_search_read
    readGroup eth_getBlockByNumber system.listMethods getDeletedItems getAddress fetchHTMLPage count lookup_2
    describeTable GET_ITEMS order.search"""
CHANGING = """mark_read mark_all_as_read markRead delete_list clear_search reset_count list_delete users.delete_query
    countReset save_query message.mark_as_read bulk_delete.find set_name_search list_add add_to_list setRead
    findOneAndUpdate getOrCreate find_and_modify READ_AND_CLEAR getaway_book listdelete web_save name_create web
    eth_call items.get."""


@pytest.mark.parametrize("name", READING.split())
def test_rpc_method_is_a_read_if_its_first_word_reads_and_no_word_changes_data(name):
    call = {"jsonrpc": "2.0", "id": 1, "method": name, "params": {}}
    assert reads("https://x.example/rpc", call)
    assert reads("https://x.example/web", {**call, "method": "call", "params": {"method": name}})


@pytest.mark.parametrize("name", [*CHANGING.split(), "", "get_удалить"])
def test_reading_word_later_in_an_rpc_method_name_is_ignored(name):
    call = {"jsonrpc": "2.0", "id": 1, "method": name, "params": {}}
    assert not reads("https://x.example/rpc", call)
    assert not reads("https://x.example/web", {**call, "method": "call", "params": {"method": name}})


@pytest.mark.parametrize(
    ("method", "passes"),
    [("GetItem", True), ("BatchGetItems", True), ("GetOrCreateItem", False), ("DeleteItem", False), ("Check", False)],
)
def test_grpc_calls_are_classified_by_the_method_in_their_path(method, passes):
    headers = {"content-type": "application/grpc-web+proto"}
    assert reads(f"https://x.example/shop.v1.Items/{method}", "\0", headers) is passes
    assert not reads(f"https://x.example/shop.v1.Items/{method}", "\0", {"content-type": "text/plain"})


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


@pytest.mark.parametrize(
    "query",
    ["mutation{a}", "\n\tmutation { a }", "\r\nmutation M { a }", "# query\nmutation{a}", "\ufeff, mutation{a}",
     "query A { a } mutation B { b }", "fragment F on T { a } mutation { ...F }", "mutation { a(b: $)"],
)  # fmt: skip
@pytest.mark.parametrize("mode", ["guard", "strict"])
def test_graphql_mutation_by_get_is_stopped_in_any_spelling(query, mode):
    judge = RequestPolicy(mode, RULES)
    for written in (quote(query), quote_plus(query), "".join(f"%{byte:02x}" for byte in query.encode())):
        for name in ("query", "%71uery", "QUERY"):
            assert judge.may_change(
                OutgoingRequest("GET", f"https://x.example/graphql?v=1&{name}={written}#a", {}, None)
            )


@pytest.mark.parametrize("query", ["{ a }", "query Q { mutation }", "mutation rates of viruses", "a {mutations}", ""])
def test_get_query_that_only_mentions_mutations_passes(query):
    assert reads(f"https://x.example/search?query={quote_plus(query)}", method="GET")


def test_method_override_is_detected_in_any_encoding():
    for query in ("_method=delete", "%5Fmethod=%44ELETE", "a=1&_method=Put"):
        assert not reads(f"https://x.example/a?{query}", method="GET")
    assert reads("https://x.example/a?q=_method%3Ddelete", method="GET")


def test_strict_mode_passes_safe_methods_only():
    strict = RequestPolicy("strict", RULES)
    assert strict.may_change(OutgoingRequest("POST", "https://x.example/graphql", JSON, '{"query": "{ a }"}'))
    assert strict.message_may_change(websocket_message("wss://x.example/", "ping"))
    assert not strict.may_change(OutgoingRequest("GET", "https://x.example/", {}, None))


def test_unreadable_body_matches_no_rule_on_bodies():
    assert RequestPolicy().may_change(OutgoingRequest("POST", "https://x.example/graphql", JSON, None))
    assert RequestPolicy().may_change(OutgoingRequest("POST", "https://x.example/query", JSON, None))


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
def test_subscribe_and_keep_alive_messages_pass(text):
    assert RULES.matching_message_rule(websocket_message("wss://x.example/live", text))


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
    assert RULES.matching_message_rule(websocket_message("wss://x.example/live", text)) is None


@given(st.text(max_size=200))
def test_any_text_can_be_classified(text):
    reads(f"https://x.example/{text}", text)
    RULES.matching_message_rule(websocket_message("wss://x.example/", text))


def rules_of(tmp_path, text, site="shop.example"):
    file = tmp_path / "rules.yaml"
    file.write_text(text)
    return GuardRules.read(file, site)


def test_user_rules_apply_to_their_site_and_to_forms(tmp_path):
    text = """sites:
      - host: "*.example"
        block: [{name: x, text: y}]
        reads:
          - {name: prices, url: "/api/prices$", body: '"list"'}
          - {url: "/filter$"}
          - {method: SEND, url: "^wss://", body: "^watch "}
    """
    rules = rules_of(tmp_path, text)
    assert (
        rules.matching_read_rule(OutgoingRequest("POST", "https://shop.example/api/prices", {}, '{"list": 1}'))
        == "prices"
    )
    assert (
        rules.matching_read_rule(OutgoingRequest("POST", "https://shop.example/api/prices", {}, '{"set": 1}')) is None
    )
    assert rules.matching_read_rule(OutgoingRequest("POST", "https://shop.example/filter", {}, None), is_document=True)
    assert (
        rules.matching_read_rule(OutgoingRequest("POST", "https://shop.example/search", {}, "q"), is_document=True)
        is None
    )
    assert rules.matching_message_rule(websocket_message("wss://shop.example/", "watch 1"))
    assert rules.matching_message_rule(websocket_message("wss://shop.example/", "buy 1")) is None
    assert (
        rules_of(tmp_path, text, "other.test").matching_read_rule(
            OutgoingRequest("POST", "https://other.test/filter", {}, "")
        )
        is None
    )


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
def test_invalid_rules_give_one_clear_message(tmp_path, allow):
    with pytest.raises(InvalidInput) as raised:
        rules_of(tmp_path, f'sites: [{{host: "*", reads: [{allow}]}}]')
    assert "rules.yaml" in raised.value.message


def test_expression_with_catastrophic_backtracking_takes_linear_time(tmp_path):
    rules = rules_of(tmp_path, 'sites: [{host: "*", reads: [{url: "(a+)+$", body: "^(([a-z])+.)+[A-Z]([a-z])+$"}]}]')
    assert (
        rules.matching_read_rule(OutgoingRequest("POST", "https://x.example/" + "a" * 50_000 + "!", {}, "a" * 100_000))
        is None
    )


def test_state_changing_get_is_allowed_for_documents_only():
    judge = RequestPolicy("guard", RULES, StateChangingUrls(lambda url: url.endswith("/logout")))
    assert judge.may_change(OutgoingRequest("GET", "https://x.example/logout"))
    assert not judge.may_change(
        OutgoingRequest("GET", "https://x.example/logout"), is_document=True, is_navigation=True
    )
    assert not judge.may_change(OutgoingRequest("GET", "https://x.example/in"))
