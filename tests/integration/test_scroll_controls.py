"""Scroll buttons and markers of style sheets: they are found by name in an agent's page, too, and scroll their box."""

from dataclasses import replace

import pytest

from tests.browsers import BROWSERS, LOOPBACK_ONLY
from tests.integration.test_page_script import look, names
from tests.sites.phenomena.platform import SCROLL_BUTTONS, SCROLL_MARKERS
from tests.sites.server import FixtureServer
from waygraph.core.settings import ExploreSettings
from waygraph.pipeline.browser.page.snapshot import SnapshotOptions
from waygraph.pipeline.browser.page.view import PageView

OPTIONS = SnapshotOptions.from_settings(LOOPBACK_ONLY, ExploreSettings())
BUTTONS = SCROLL_BUTTONS.pages[SCROLL_BUTTONS.start]
MARKERS = SCROLL_MARKERS.pages[SCROLL_MARKERS.start]


def in_agents_page(html, use, **options):
    """Return the results of `use`, which gets the view of a page that waygraph does not own, and its first snapshot."""

    async def run(site):
        page = await (await BROWSERS.browser()).new_page()
        try:
            view = PageView(page, replace(OPTIONS, **options), LOOPBACK_ONLY, owned=False)
            return await use(view, (await view.goto(site.url)).snapshot)
        finally:
            await page.close()

    with FixtureServer({"/": html}) as site:
        return BROWSERS.run(run(site))


@pytest.mark.parametrize(
    ("html", "control", "slide"),
    [(BUTTONS, "On a slide", "Second slide"), (MARKERS, "Tab of plums", "Plums")],
    ids=["button", "marker"],
)
def test_a_recorded_control_is_pressed_in_another_page_at_its_place_and_elsewhere(html, control, slide):
    recorded = next(c.action for c in look(html).candidates if c.action.name == control)

    async def press(view, _):
        acted = await view.act(recorded)
        return acted.rung, names(acted.snapshot)

    rung, shown = in_agents_page(html, press)
    assert (rung, slide in shown) == ("exact", True)
    rung, shown = in_agents_page(html.replace("<div class=track>", "<div></div><div class=track>"), press)
    assert (rung, slide in shown) == ("role", True)


def test_an_agent_is_shown_the_controls_where_the_browser_has_them():
    async def outline(_, seen):
        return [(node.role, node.name, node.states, node.candidate >= 0) for node in seen.outline if node.name]

    assert in_agents_page(BUTTONS, outline, outline=True)[:3] == [
        ("button", "Back a slide", (("disabled", "true"),), True),
        ("button", "On a slide", (), True),
        ("link", "First slide", (), True),
    ]
    shown = in_agents_page(MARKERS, outline, outline=True)
    assert [row[:2] for row in shown if row[0] == "tab"] == [
        ("tab", f"Tab of {fruit}") for fruit in ("apples", "pears", "plums")
    ]


def test_names_of_controls_are_their_alternative_text_or_their_text():
    seen = look(
        """<title>t</title><style>div { overflow: auto; width: 200px; height: 60px } p { width: 900px; height: 900px }
        div::scroll-button(right) { content: "x" / "To the " attr(data-side) }
        div::scroll-button(down) { content: "Down / on" }</style><div data-side=right><p>Text</p></div>"""
    )
    assert names(seen) == ["Down / on", "To the right"]


def test_boxes_without_such_controls_have_none():
    seen = look(
        "<title>t</title><style>div { overflow: auto; height: 60px } p { height: 900px }</style><div><p>T</div>"
    )
    assert names(seen) == []
