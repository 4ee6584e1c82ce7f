"""Selectors that MCP answers give: Playwright accepts them, and they find the recorded element and no other."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from playwright.async_api import Error, Page

from tests.browsers import BROWSERS, LOOPBACK_ONLY
from tests.exploring import ExploredShop
from tests.sites.naming import naming_page
from tests.sites.phenomena import documents, forms, widgets
from tests.sites.server import Answer, FixtureServer
from waygraph.core.schemas import ActionModel
from waygraph.core.settings import CaptureProfile, ExploreSettings
from waygraph.index.graph import Action
from waygraph.pipeline.browser.page.snapshot import SnapshotOptions
from waygraph.pipeline.browser.session import ContextOptions, GuardedPage
from waygraph.serve.mcp.selectors import selector_of

#: Whether each found element is the recorded one. Its paths, of the frames that contain it and its own, lead through
#: open shadow roots. Null where the page's scripts cannot reach the recorded element.
COMPARE = r"""(found, [frames, path]) => {
  const resolve = (document, path) => {
    let at = document;
    for (const [i, hop] of path.split(" >>> ").entries()) {
      if (i > 0) at = at && at.shadowRoot;
      for (const step of hop.split("/").slice(1)) {
        const [, foreign, local, index] = /^(?:\*\[name\(\)="(.*)"\]|([^[]+))\[(\d+)\]$/.exec(step) || [];
        if (!at || !index) return null;
        const isOne = (child) => (foreign ? child.nodeName === foreign : child.localName === local);
        at = [...at.children].filter(isOne)[index - 1];
      }
    }
    return at;
  };
  let inner = top.document;
  for (const frame of frames) {
    const owner = inner && resolve(inner, frame);
    inner = owner && /^i?frame$/.test(owner.localName) ? owner.contentDocument : null;
  }
  const recorded = inner && resolve(inner, path);
  return recorded ? found.map((element) => element === recorded) : null;
}"""

ODD_NAMES = [
    'Say "hi"', "It's", "back\\slash", "a >> b", "[x=1]", "ends with \\", "line\nbreak", "🫖 tea", "`tick`", "/slash/i",
    "a" * 500,
    "日本語", "same", "same", "same", "  spaces   inside  ", '"', '\\"', 'name="x"s] >> nth=3', "SAME", "é",
]  # fmt: skip
ODD_PAGES = {
    "/odd": "".join(
        f"<p><a href='/{number}'></a></p><script>document.links[{number}].textContent = {name!r}</script>"
        for number, name in enumerate(ODD_NAMES)
    ),
    "/more": """<button aria-label='same'></button><button hidden>same</button><button>same</button>
        <button><svg width=9 height=9></svg></button><x-a></x-a><iframe src=/inner width=400 height=200></iframe>
        <style>i::before { content: "★" }</style><button><i></i> Favourite</button>
        <details><summary>More</summary></details><div onclick="1" style="cursor: pointer">plain</div>
        <script>document.querySelector("x-a").attachShadow({mode: "open"}).innerHTML =
          "<p><button>deep</button></p><button><b style='display: block; width: 9px; height: 9px'></b></button>"
        </script>""",
    "/inner": "<button>same</button><button>same</button><a href=/x>🫖 'x' \"y\"</a>",
}


async def judge(page: Page, action: Action) -> str:
    """Return whether the selector of an action finds its element: `right`, or what is wrong."""
    selector = selector_of(ActionModel.model_validate(action.to_json()))
    if not selector:
        return "not in the document"
    try:
        same = await page.locator(selector).evaluate_all(COMPARE, [list(action.frame), action.xpath])
    except Error as error:
        return f"refused: {error.message}"
    return {(True,): "right", (): "nothing"}.get(tuple(same), "another element" if len(same) == 1 else "several")


async def judged(url: str, paths: Iterable[str]) -> dict[tuple[str, Action], str]:
    options = SnapshotOptions.from_settings(LOOPBACK_ONLY, ExploreSettings())
    found = {}
    page = await GuardedPage.open(
        await BROWSERS.browser(),
        ContextOptions(CaptureProfile(), user_agent="waygraph-test"),
        settings=LOOPBACK_ONLY,
        snapshot_options=options,
        document_policy=lambda _: None,
    )
    try:
        for path in paths:
            snapshot = (await page.view.goto(f"{url.rstrip('/')}{path}")).snapshot
            actions = [candidate.action for candidate in snapshot.candidates]
            recorded = [[list(action.frame), action.xpath] for action in actions]
            there = await page.page.evaluate(f"(all) => all.map((each) => ({COMPARE})([], each) !== null)", recorded)
            for action, is_there in zip(actions, there, strict=True):
                found[path, action] = await judge(page.page, action) if is_there else "not in the document"
    finally:
        await page.close()
    return found


def wrong(found: Mapping[tuple[str, Action], str]) -> dict[tuple[str, Action], str]:
    return {key: verdict for key, verdict in found.items() if verdict != "right"}


def test_selectors_of_odd_names_find_exactly_the_recorded_elements():
    with FixtureServer(ODD_PAGES) as site:
        found = BROWSERS.run(judged(site.url, ["/odd", "/more"]))
    assert len(found) >= len(ODD_NAMES) + 10
    assert wrong(found) == {}


def test_selectors_of_frames_forms_and_widgets_find_exactly_the_recorded_elements():
    pages: dict[str, Answer] = {}
    for area in (*documents.AREAS, *forms.AREAS, *widgets.AREAS):
        pages.update(area.pages)
    shown = [path for path, answer in pages.items() if isinstance(answer, str) and not path.startswith("/downloads/")]
    with FixtureServer(pages) as site:
        found = BROWSERS.run(judged(site.url, shown))
    assert len(found) > 60
    # Parts that the browser draws, closed shadow roots, and rows of lists that are not rendered.
    assert set(wrong(found).values()) <= {"not in the document"}


def test_no_selector_finds_another_element_than_the_recorded_one():
    with FixtureServer({"/": naming_page()}) as site:
        found = BROWSERS.run(judged(site.url, ["/"]))
    assert len(found) > 150
    # Playwright counts the options of a `select` with a base appearance differently, and then refuses to act.
    assert set(wrong(found).values()) <= {"several", "not in the document"}
    assert len(wrong(found)) < 25


def test_selectors_of_every_action_of_the_shops_pages_find_exactly_the_recorded_elements(shop: ExploredShop):
    nodes = shop.capture.graph.nodes.values()
    paths = sorted({node.url.removeprefix(shop.site.url.rstrip("/")) for node in nodes if node.addressable})
    found = BROWSERS.run(judged(shop.site.url, paths))
    recorded = {edge.action for edge in shop.capture.graph.edges if edge.action.kind != "goto"}
    assert len({action for _, action in found} & recorded) > 100
    assert wrong(found) == {}
