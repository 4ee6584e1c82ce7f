"""Applications that read by POST and over WebSockets are mapped, and what only an action sends is stopped."""

import pytest

from tests.exploring import explore
from tests.sites.server import FixtureServer
from tests.sites.socket_app import DEVICES, SocketApp
from waygraph.core.errors import ContentStopped
from waygraph.index.graph.export import to_json
from waygraph.pipeline.explore.records.capture import SENDS_STOPPED


@pytest.fixture(scope="module")
def explored():
    with SocketApp() as app:
        capture = explore(app.url, depth=2, scope_hosts=(app.socket_host,))
        yield app, capture


def texts_of(capture):
    return {
        observation.url.rpartition("/")[2]: {segment.text for segment in observation.segments}
        for observation in capture.observations.values()
    }


def test_pages_show_what_a_visit_reads_by_post_and_over_a_websocket(explored):
    _, capture = explored
    texts = texts_of(capture)
    assert set(DEVICES) <= texts["overview"]
    assert {"Entry 3", "Entry 5", "Next page"} <= texts["list"]
    assert {"Lamp was on", "Door was open"} <= texts["history"]


def test_nothing_that_an_action_sends_to_change_something_reaches_the_servers(explored):
    app, capture = explored
    assert app.changes == []
    stopped = {edge.action.name: edge.blocked for edge in capture.graph.edges if edge.blocked}
    assert {f"Switch {device}" for device in DEVICES} <= stopped.keys()
    assert [request.method for request in stopped["Keep this order"]] == ["POST"]
    assert stopped.keys() <= {*(f"Switch {device}" for device in DEVICES), "Keep this order"}


def test_an_action_that_sends_what_the_visit_sent_leads_to_what_it_shows(explored):
    _, capture = explored
    assert any("5 devices answer" in segment.text for o in capture.observations.values() for segment in o.segments)


@pytest.mark.extended
def test_the_map_of_such_an_application_does_not_depend_on_the_number_of_workers(explored):
    app, capture = explored
    again = explore(app.url, depth=2, scope_hosts=(app.socket_host,), workers=3)
    assert to_json("app", 1, again.graph) == to_json("app", 1, capture.graph)


def test_what_visits_sent_is_reported(explored):
    app, capture = explored
    sent = capture.report.sent_by_visits
    assert f"POST {app.url}api/list" in sent
    assert f"SEND ws://{app.socket_host}/api/websocket get_states" not in sent  # a type that reads passes by a rule
    assert f"SEND ws://{app.socket_host}/api/websocket subscribe_events" in sent
    assert not any("eyJ" in label for label in sent)


def test_an_application_without_its_content_is_not_mapped():
    with SocketApp() as app:
        with pytest.raises(ContentStopped) as stopped:
            explore(app.url, depth=1, scope_hosts=(app.socket_host,), guard="strict")
        assert app.reads == []
    assert "/auth/token" in stopped.value.message
    assert "method: POST" in stopped.value.hint


def test_a_small_site_whose_pages_had_requests_stopped_is_partial():
    pages = {"/": "<h1>Bakery</h1><p>Open from six.</p><p>Bread</p><p>Rolls</p><p>Cake</p><p>Pie</p>"
             "<script>fetch('/visitors/add', {method: 'POST'})</script>"}  # fmt: skip
    with FixtureServer(pages) as site:
        report = explore(site.url, depth=1).report
        assert site.mutations == 0
    assert (report.partial, report.stopped_by) == (True, SENDS_STOPPED)
    assert "/visitors/add" in "".join(report.advice)
