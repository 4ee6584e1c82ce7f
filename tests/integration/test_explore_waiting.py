"""States that were stored while their pages still showed that they were not ready are marked, others are not."""

from tests.exploring import explore
from tests.sites.server import FixtureServer
from waygraph.index.graph.export import to_json

NAVIGATION = "<nav><a href=/>Home</a></nav>"
NEVER = {
    "busy": "<main aria-busy=true><p>Orders</p></main>",
    "words": "<main><p>All pages</p><p class=note>Loading…</p></main>",
    "progress": "<main><p>Reports</p><progress></progress></main>",
}


def test_states_that_never_became_ready_are_marked():
    links = "".join(f"<a href=/{name}>{name}</a> " for name in (*NEVER, "ready"))
    part = "this.insertAdjacentHTML('afterend', '<section aria-busy=true>Part</section>')"
    opener = f'<button onclick="{part}">Open</button>'
    pages = {name: f"<title>{name}</title>{NAVIGATION}{main}" for name, main in NEVER.items()}
    ready = f"<title>ready</title>{NAVIGATION}<main><p>All is here</p>{opener}</main>"
    with FixtureServer({"/": links, "/ready": ready, **{f"/{name}": html for name, html in pages.items()}}) as site:
        capture = explore(site.url, depth=2, browser={"settle_cap_ms": 300})
        exported = to_json("site", 1, capture.graph)["nodes"]
        marked = [node["url"].removeprefix(site.url) for node in exported if node.get("waiting")]
    assert sorted(marked) == ["busy", "progress", "ready", "words"]  # "ready" with the part that was opened
    assert len(exported) == len(marked) + 2
    assert capture.report.counters["settle/stored_waiting"] == 4
