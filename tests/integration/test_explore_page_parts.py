"""Links to parts of their own page: those that scroll are tried a few times, those that are tabs to the end."""

from tests.blobs import MemoryBlobs
from tests.exploring import explore
from tests.sites.server import FixtureServer

SECTIONS, TABS = range(12), range(8)
PAGE = (
    "<title>Manual</title><style>div:not(:target) { display: none }</style><h1>Manual</h1><ul>"
    + "".join(f"<li><a href=#section-{n}>Section {n}</a>" for n in SECTIONS)
    + "</ul><nav>"
    + "".join(f"<a href=#tab-{n}>Tab {n}</a> " for n in TABS)
    + "</nav>"
    + "".join(f"<div id=tab-{n}>Content of tab {n}</div>" for n in TABS)
    + "".join(f"<h2 id=section-{n}>About {n}</h2>" for n in SECTIONS)
)


def test_links_that_scroll_are_cut_and_tabs_are_not():
    with FixtureServer({"/": PAGE}) as site:
        capture = explore(site.url, depth=1, blobs=MemoryBlobs())
    shown = {segment.text for seen in capture.observations.values() for segment in seen.segments}
    assert {f"Content of tab {n}" for n in TABS} <= shown
    skipped = [skip.element for skip in capture.report.skips if skip.reason == "alike"]
    assert len(skipped) == len(SECTIONS) - 5
    assert all("Section" in element for element in skipped)
