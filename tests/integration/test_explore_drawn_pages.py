"""What is drawn decides whether a document with the status 404 is a page; the status is recorded."""

import json
from urllib.parse import urlsplit

from tests.exploring import explore
from tests.sites.drawn_pages import DRAWN, pages
from tests.sites.server import FixtureServer
from waygraph.index.graph.export import to_json


def test_pages_that_an_application_draws_in_a_404_are_states_and_error_pages_are_not():
    with FixtureServer(pages()) as site:
        first, second = (explore(site.url, depth=3, workers=workers) for workers in (1, 2))
    shown = {urlsplit(node.url).path: (node.title, node.status) for node in first.graph.nodes.values()}
    assert shown == {"/": ("Start", 0)} | {path: (title, 404) for path, title in DRAWN.items()}
    failed = [failure.reason for failure in first.report.failures]
    assert len(failed) == 3
    assert all(reason.startswith("http_404") for reason in failed)
    documents = [json.dumps(to_json(each.site, 1, each.graph)) for each in (first, second)]
    assert documents[0] == documents[1]
