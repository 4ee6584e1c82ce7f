"""Names that no attribute shows are in maps, are found by search, and are known again in a caller's page."""

import pytest

from tests.browsers import BROWSERS
from tests.exploring import explore
from tests.sites.server import FixtureServer
from waygraph.core.settings import Settings
from waygraph.index.store import Store
from waygraph.pipeline.encode.registry import create_encoder
from waygraph.pipeline.jobs.publishing.draft import encode_draft
from waygraph.sdk.local import StoreMap
from waygraph.sdk.teleport import teleport

CLOCK = """<x-clock></x-clock><script>customElements.define("x-clock", class extends HTMLElement { constructor() {
    super(); Object.assign(this.attachInternals(), {role: "button", ariaLabel: "Opening hours"});
    this.onclick = () => location = "/1"; } })</script>"""
PAGES = {
    "/": f"""<title>Museum</title><style>x-clock, a {{ display: block; width: 99px; height: 20px; background: teal }}
        .tour::before {{ content: "" / "Guided tours" }}</style><h1>Museum</h1>{CLOCK}<a href=/2 id=prices></a>
        <i id=label>Ticket prices</i><a class=tour href=/3></a>
        <script>prices.ariaLabelledByElements = [label]</script>""",
    "/1": "<title>One</title><h1>First</h1><p>Nine to five.</p>",
    "/2": "<title>Two</title><h1>Second</h1><p>Ten euros.</p>",
    "/3": "<title>Three</title><h1>Third</h1><p>Two people.</p>",
}
NAMES = {"/1": "Opening hours", "/2": "Ticket prices", "/3": "Guided tours"}


@pytest.fixture(scope="module")
def museum(tmp_path_factory):
    """The site, its map, and what was explored."""
    settings = Settings()
    with FixtureServer(PAGES) as site:
        store = Store.open(str(tmp_path_factory.mktemp("museum")), create=True)
        capture = explore(site.url, depth=1, blobs=store.blobs)
        store.publish(encode_draft(capture, settings, create_encoder(settings.encode, store.blobs)))
        with StoreMap(store.location) as maps:
            yield site, maps, capture


def node_at(capture, path):
    (node,) = [node.id for node in capture.graph.nodes.values() if node.url.endswith(path)]
    return node


def test_actions_and_texts_of_a_map_have_such_names(museum):
    _, _, capture = museum
    actions = {edge.action.name: edge.action.role for edge in capture.graph.edges if edge.action.kind == "click"}
    assert actions == {"Opening hours": "button", "Ticket prices": "link", "Guided tours": "link"}
    start = capture.observations[node_at(capture, "/")]
    assert set(NAMES.values()) <= {segment.text for segment in start.segments if segment.role in {"button", "link"}}


@pytest.mark.parametrize("path", NAMES)
def test_a_search_for_such_a_name_finds_what_the_element_leads_to(museum, path):
    _, maps, capture = museum
    (hit, *_) = maps.search(capture.site, NAMES[path], 4).hits
    assert hit.node_id == node_at(capture, path)


@pytest.mark.parametrize("path", NAMES)
def test_the_way_is_walked_in_a_page_of_a_caller(museum, path):
    site, maps, capture = museum

    async def walk():
        context = await (await BROWSERS.browser()).new_context(viewport={"width": 1280, "height": 800})
        try:
            page = await context.new_page()
            await page.goto(site.url)
            return await teleport(page, maps, capture.site, node_at(capture, path), allow_goto=False, report=False)
        finally:
            await context.close()

    result = BROWSERS.run(walk())
    assert (result.outcome, [step.problem for step in result.steps]) == ("arrived", [""])
