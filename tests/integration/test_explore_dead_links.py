"""Links to pages that do not exist: further links to the same URL are not followed."""

import json

from tests.blobs import MemoryBlobs
from tests.exploring import explore
from tests.sites.server import FixtureServer
from waygraph.index.graph.export import to_json

NUMBERS = range(6)
PAGES = {
    "/": "<title>Start</title><h1>Start</h1>" + "".join(f"<p><a href=/page/{n}>Page {n}</a></p>" for n in NUMBERS),
    **{
        f"/page/{n}": f"<title>Page {n}</title><h1>Page {n}</h1>{'<p>Text</p>' * n}"
        f"<p>See <a href=/missing>note {n}</a> and <a href=/other/{n}>that of {n}</a></p>"
        for n in NUMBERS
    },
}


def test_of_links_to_a_url_that_does_not_exist_one_is_followed():
    with FixtureServer(PAGES) as site:
        captures = [explore(site.url, depth=3, workers=workers, blobs=MemoryBlobs()) for workers in (1, 2)]
        assert site.paths.count("/missing") == 2
    for capture in captures:
        assert len(capture.graph.nodes) == 1 + len(NUMBERS)
        failed = [failure.reason for failure in capture.report.failures]
        assert sum("/missing" in reason for reason in failed) == 1
        assert sum("/other/" in reason for reason in failed) == len(NUMBERS)
        skipped = [skip for skip in capture.report.skips if skip.reason == "dead_link"]
        assert len(skipped) == len(NUMBERS) - 1
        assert all(skip.target.endswith("/missing") for skip in skipped)
        assert not capture.leads
    exports = [json.dumps(to_json(each.site, 1, each.graph)) for each in captures]
    assert exports[0] == exports[1]
