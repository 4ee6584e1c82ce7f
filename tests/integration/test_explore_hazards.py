"""Buttons that save or send are pressed behind the guard; nothing that they send arrives."""

import pytest

from tests.exploring import explore
from tests.sites.server import FixtureServer

PAGES = {
    "/": """<title>Profile</title><h1>Profile</h1><p id=note></p>
      <button onclick="fetch('/api/profile', {method: 'POST'}).catch(() => note.textContent = 'Could not save')">Save
        profile</button>
      <button onclick="fetch('/api/save?name=Ann').catch(() => note.textContent = 'Not saved')">Save name</button>
      <button onclick="note.textContent = 'Save to which folder?'">Save as</button>
      <button onclick="location = '/sent'">Send feedback</button>
      <button onclick="fetch('/api/all', {method: 'POST'})">Save and delete</button>
      <button onclick="deleteAll()">Confirm</button>
      <button onclick="fetch('/api/off', {method: 'POST'})">Restart</button>
      <form method=post action=/picture><button>Choose a picture</button></form>
      <button onclick="setTimeout(() => fetch('/api/later'), 900)">Apply</button>
      <form method=post action=/gone><button>Delete picture</button></form>
      <form action=/newsletter><button>Sign me up</button></form>
      <script>function deleteAll() { fetch('/api/everything', {method: 'POST'}); }</script>""",
    "/sent": "<title>Sent</title><h1>Thank you</h1>",
    "/newsletter": "<title>Newsletter</title><h1>You get our letters</h1>",
}


def explore_profile(**settings):
    with FixtureServer(PAGES) as site:
        capture = explore(site.url, depth=2, **settings)
        assert site.mutations == 0
        assert {target.partition("?")[0] for target in site.paths} <= {"/", "/robots.txt", "/sitemap.xml"}
    return capture


@pytest.fixture(scope="module")
def pressed():
    return explore_profile()


def test_a_pressed_button_is_an_edge_to_its_own_state_that_says_what_is_sent(pressed):
    sends = {edge.action.name: (edge, edge.blocked) for edge in pressed.graph.edges if edge.blocked}
    sends.pop("Apply", None)  # it sends later than a page is waited for, in most cases
    assert {name: [(r.method, r.url.rpartition(":")[2].partition("/")[2]) for r in requests]
            for name, (_, requests) in sends.items()} == {
        "Save profile": [("POST", "api/profile")],
        "Save name": [("GET", "api/save?name=Ann")],
        "Choose a picture": [("POST", "picture")],
    }  # fmt: skip
    assert all(edge.source == edge.target for edge, _ in sends.values())


def test_a_button_that_only_shows_something_leads_to_it(pressed):
    texts = [segment.text for observation in pressed.observations.values() for segment in observation.segments]
    assert "Save to which folder?" in texts
    assert len(pressed.graph.nodes) == 2  # no state for what the page shows when a request was stopped


def test_documents_and_other_changes_are_left_alone(pressed):
    skips = {skip.element: skip.reason for skip in pressed.report.skips}
    assert skips == {
        'click button "Send feedback"': "hazard",  # pressed; the document that it requests is not loaded
        'click button "Save and delete"': "hazard",
        'click button "Confirm"': "hazard",
        'click button "Restart"': "hazard",
        'click button "Delete picture"': "hazard",
        'click button "Sign me up"': "form_get",
    }


@pytest.mark.parametrize("settings", [{"hazards": "skip"}, {"guard": "observe"}], ids=["skip", "observe"])
def test_nothing_is_pressed_on_request_or_without_a_guard(settings):
    capture = explore_profile(**settings)
    assert not list(capture.graph.edges)
    assert len(capture.report.skips) == 11
