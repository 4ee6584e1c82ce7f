"""What a page sends while it loads, and what counts as the same request later."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from waygraph.pipeline.browser.guard import GuardRules, OutgoingRequest, RequestPolicy, websocket_message
from waygraph.pipeline.browser.guard.send_shape import names_in, operation_label, send_shape
from waygraph.pipeline.browser.guard.visits import MAX_SCRIPT_REQUESTS

JSON = {"content-type": "application/json"}
FORM = {"content-type": "application/x-www-form-urlencoded"}


def post(body, url="https://x.example/api/list", headers=JSON, method="POST"):
    return OutgoingRequest(method, url, headers, body if isinstance(body, str) else json.dumps(body))


def message(body):
    return websocket_message("wss://x.example/live", body if isinstance(body, str) else json.dumps(body))


def visit(mode="guard"):
    policy = RequestPolicy(mode)
    policy.visits.is_learning = False
    page = policy.new_page_visit()
    page.begin()
    return page


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (post({"page": 1, "sort": "name"}), post({"sort": "name", "page": 27})),
        (post({"q": "two words"}), post({"q": "three more words"})),
        (post({}, url="https://x.example/items/17?v=3"), post({}, url="https://x.example/items/2094?v=4")),
        (post("op=list&nonce=9f8a7b6c5d4e3f21", headers=FORM), post("op=list&nonce=0011223344556677", headers=FORM)),
        (
            post({"operationName": "Items", "extensions": {"persistedQuery": {"sha256Hash": "ab12"}}, "variables": 1}),
            post({"operationName": "Items", "extensions": {"persistedQuery": {"sha256Hash": "ab12"}}, "variables": 2}),
        ),
        (message({"id": 7, "type": "watch"}), message({"id": 8, "type": "watch"})),
        (
            message({"type": "auth", "access_token": "eyJhbGciOi.e30.x"}),
            message({"type": "auth", "access_token": "other.token"}),
        ),
        (
            message('["4","6","lv:phx-F8xyzA12bc3D4e5f","phx_join",{}]'),
            message('["9","12","lv:phx-G9abcD45ef6G7h8i","phx_join",{}]'),
        ),
        (message('42["load",{"page":1}]'), message('42["load",{"page":2}]')),
        (message("SUBSCRIBE 12"), message("SUBSCRIBE 13")),
    ],
)
def test_the_same_operation_with_other_data_has_the_same_shape(one, other):
    assert send_shape(one) == send_shape(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (post({"page": 1, "sort": "name"}), post({"page": 1, "sort": "date"})),
        (post({"page": 1}), post({"page": 1, "keep": True})),
        (post({"on": False}), post({"on": True})),
        (post({"op": 1}), post({"op": 2})),
        (post({}, url="https://x.example/items/17"), post({}, url="https://x.example/items/17/stock")),
        (post({}, url="https://x.example/items"), post({}, url="https://y.example/items")),
        (post("{}", headers={}), post("{}", method="PUT")),
        (
            post({"operationName": "Items", "extensions": {"persistedQuery": {"sha256Hash": "ab12"}}}),
            post({"operationName": "Items", "extensions": {"persistedQuery": {"sha256Hash": "cd34"}}}),
        ),
        (post({"query": "query A { a }"}), post({"query": "query B { b }"})),
        (
            message({"type": "call", "service": "light.on"}),
            message({"type": "call", "service": "door.open"}),
        ),
        (message('42["load",{}]'), message('42["sell",{}]')),
        (
            message('["4","6","lv:phx-1","event",{"event":"inc"}]'),
            message('["4","6","lv:phx-1","event",{"event":"buy"}]'),
        ),
        (websocket_message("wss://x.example/", "\x01\x02", is_binary=True),) * 1
        + (websocket_message("wss://x.example/", "\x01\x03", is_binary=True),),
    ],
)
def test_another_operation_has_another_shape(one, other):
    assert send_shape(one) != send_shape(other)


def test_what_a_visit_sends_may_be_sent_again_after_it_and_nothing_else():
    page = visit()
    assert page.lets_pass(post({"page": 1}))
    page.end()
    assert page.lets_pass(post({"page": 2}))
    assert not page.lets_pass(post({"other": 2}))
    assert page.take_stopped() == {send_shape(post({"other": 3}))}
    page.begin()
    page.end()
    assert not page.lets_pass(post({"page": 3}))


def test_a_granted_shape_passes_until_the_grant_ends():
    page = visit()
    page.end()
    page.granted = frozenset({send_shape(post({"page": 1}))})
    assert page.lets_pass(post({"page": 2}))
    page.granted = frozenset()
    assert not page.lets_pass(post({"page": 2}))


def test_only_the_start_page_teaches_the_other_pages():
    policy = RequestPolicy()
    start, later, third = (policy.new_page_visit() for _ in range(3))
    start.begin()
    assert start.lets_pass(post({"page": 1}))
    policy.visits.is_learning = False
    later.begin()
    assert later.lets_pass(post({"tag": 1}))
    later.end()
    assert later.lets_pass(post({"page": 5}))
    assert third.lets_pass(post({"page": 5}))
    assert not third.lets_pass(post({"tag": 1}))


@pytest.mark.parametrize(
    "request_",
    [
        post({"page": 1}, method="PUT"),
        post({"page": 1}, method="DELETE"),
        post({"page": 1}, url="https://x.example/items/delete"),
        post({"page": 1}, url="https://x.example/items/7/item-update"),
        post({"page": 1}, url="https://x.example/api?action=save"),
        post({"action": "remove", "id": 5}),
        post({"delete": ["5"]}),
        post({"add": {"id": 5}}),
        post({"query": "mutation { a }"}),
        post({"payload": {"query": "mutation { a"}}),
        post({"operationName": "UpdateSeen", "extensions": {"persistedQuery": {"sha256Hash": "ab12"}}}),
        post("action=lock&id=5", headers=FORM),
        post({"a": 1}, headers={**JSON, "x-http-method-override": "DELETE"}),
        OutgoingRequest("POST", "https://x.example/api", {}, None),
        message({"type": "call_service", "service": "lock.unlock"}),
        message({"type": "light", "service": "turn_on"}),
        message("SEND\ndestination:/app/door/unlock\n\nx"),
        message('42["vote",{"id":1}]'),
        websocket_message("wss://x.example/", "\x08\x01deleteItem\x00", is_binary=True),
    ],
)
def test_a_request_that_names_a_change_does_not_pass_in_a_visit(request_):
    assert not visit().lets_pass(request_)


@pytest.mark.parametrize(
    "request_",
    [
        post({"client": "frontend", "code": "a1b2c3d4e5f60718"}, url="https://x.example/auth/token"),
        post({"operationName": "Items", "extensions": {"persistedQuery": {"sha256Hash": "ab12"}}}),
        post("", headers={}),
        message({"type": "auth", "access_token": "Set.Add.Put1"}),
        message({"id": 2, "type": "subscribe_events", "event_type": "state_changed"}),
        message({"type": "unsubscribe_events", "subscription": 4}),
        message('["4","6","lv:phx-F8","phx_join",{"params":{"_mounts":0},"session":"SFMyNTY","static":"x"}]'),
        websocket_message("wss://x.example/", "\x5a\x02\x08\x00", is_binary=True),
    ],
)
def test_what_applications_send_to_open_a_page_passes_in_a_visit(request_):
    assert visit().lets_pass(request_)


@pytest.mark.parametrize("type_", ["get_states", "config/entity_registry/list", "ping", "items.find"])
def test_messages_whose_type_reads_pass_at_any_time(type_):
    assert GuardRules().matching_message_rule(message({"id": 5, "type": type_}))


@pytest.mark.parametrize(
    "body",
    [
        {"type": "read", "id": 5},
        {"type": "messages/read"},
        {"type": "get", "action": "sell"},
        {"type": "list", "then": "delete"},
        {"type": "fetch", "query": "mutation { a }"},
        {"note": "get"},
    ],
)
def test_messages_that_may_do_more_than_read_do_not(body):
    assert GuardRules().matching_message_rule(message(body)) is None


def test_the_egress_proxy_recognises_what_a_visit_sent():
    policy = RequestPolicy()
    page = policy.new_page_visit()
    page.begin()
    sent = post({"page": 1}, url="https://x.example/api#part")
    assert page.lets_pass(sent)
    assert policy.has_passed(post({"page": 1}, url="https://x.example/api"))
    assert not policy.has_passed(post({"page": 2}, url="https://x.example/api"))
    assert not RequestPolicy("strict", visits=policy.visits).has_passed(sent)


def test_a_label_names_the_operation_and_no_data():
    assert operation_label(post({"type": "items/list", "token": "s3cret"}, url="https://x.example/a/5?key=1")) == (
        "POST https://x.example/a/* items/list"
    )
    assert operation_label(message('42["load",{"page":1}]')) == "SEND wss://x.example/live load"


@pytest.mark.hypothesis
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
        max_leaves=20,
    ),
    st.text(),
)
def test_any_body_has_a_stable_shape(content, text):
    for request in (post(json.dumps(content)), message(json.dumps(content)), post(text, headers=FORM), message(text)):
        assert send_shape(request) == send_shape(request)
        assert all(isinstance(name, str) for name in names_in(request))
        operation_label(request)


def test_a_page_reads_where_it_has_read_before():
    page = visit()
    assert page.reads("https://x.example/status?t=1", is_new_allowed=True)
    assert page.reads("https://x.example/status?t=2", is_new_allowed=False)
    assert not page.reads("https://x.example/save?t=2", is_new_allowed=False)
    page.begin()
    assert not page.reads("https://x.example/status", is_new_allowed=False)


def test_scripts_may_request_a_limited_number_of_addresses_of_a_host_during_a_load_and_each_action():
    page = RequestPolicy().new_page_visit()
    page.begin("https://shop.test/search")
    urls = [f"https://shop.test/{number}" for number in range(MAX_SCRIPT_REQUESTS + 1)]
    assert [page.has_budget(url) for url in urls] == [True] * MAX_SCRIPT_REQUESTS + [False]
    assert page.has_budget(f"{urls[0]}#again")
    assert page.has_budget("https://api.shop.test/1")
    assert page.site.over_budget == {"https://shop.test/search"}
    page.end(has_settled=False)
    page.begin_action()
    assert not page.has_budget(urls[-1])  # the page still goes through its list
    page.end()
    page.begin_action()
    assert page.has_budget(urls[-1])
