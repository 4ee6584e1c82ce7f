"""Which texts of a page an agent gets: those that people see, and those that pages write for screen readers."""

import pytest

from bench.beside_chromium import beside_chromium
from tests.browsers import BROWSERS, LOOPBACK_ONLY
from tests.sites.server import FixtureServer
from waygraph.agents.observation import agent_snapshot_options, observe
from waygraph.pipeline.browser.page.view import PageView

STYLE = """<!doctype html><title>T</title><style>
.clip { position: absolute; width: 1px; height: 1px; margin: -1px; overflow: hidden; clip: rect(0 0 0 0) }
.left { position: absolute; left: -10000px; width: 1px; height: 1px; overflow: hidden }
.closed { height: 0; overflow: hidden }
.aside { position: absolute; left: -300px; width: 200px }
.new::before { content: "New " }
.new::after { content: "!" }
.bare { position: absolute; top: 200px; height: 0 }
</style>"""


def observed(html, use):
    """Return what `use` makes of a page and the observation of it."""

    async def run(site):
        page = await (await BROWSERS.browser()).new_page()
        try:
            view = PageView(page, agent_snapshot_options(LOOPBACK_ONLY), LOOPBACK_ONLY, owned=False)
            await page.goto(site.url)
            return await use(page, await observe(view))
        finally:
            await page.close()

    with FixtureServer({"/": STYLE + html}) as site:
        return BROWSERS.run(run(site))


def lines(html):
    """Return the lines of the text of a page, without the root."""

    async def text(_, observation):
        return observation.text

    return observed(html, text).expandtabs(2).replace("\n  ", "\n").splitlines()[1:]


@pytest.mark.parametrize(
    ("html", "shown"),
    [
        ("<div title=Rating><span style='width:87%'><span class=clip><b>87</b>%</span></span></div>", ["text '87%'"]),
        ("<b><span class=left>12.50 euros</span><i aria-hidden=true>12<sup>50</sup></i></b>", ["text '12.50 euros'"]),
        ("<h3 class=left>Tools of the page</h3><p>Here", ["heading 'Tools of the page'", "paragraph 'Here'"]),
        ("<svg><g><text y=20>In</text></g><text y=60>Out</text></svg>", ["img", "  text 'In'", "  text 'Out'"]),
        ("<svg role=img aria-label=Visits><text y=20>Letter 17%</text></svg>", ["img 'Visits'", "  text 'Letter 17%'"]),
        ("<svg role=img aria-label=Logo><text y=20>Logo</text></svg>", ["img 'Logo'"]),
        ("<p class=new>Lamp</p>", ["paragraph 'New Lamp'"]),
        ("<ul class=left><li><em>Three</em> are left</ul>", ["listitem 'Three are left'"]),
    ],
    ids=["a rating", "a price", "a title", "a drawing", "a chart", "a logo", "of a style sheet", "a list"],
)  # fmt: skip
def test_texts_of_drawings_style_sheets_and_for_screen_readers_are_shown(html, shown):
    assert lines(html) == shown


@pytest.mark.parametrize(
    "html",
    [
        "<ul class=left><li><a href='#main'>Skip to the content</a></ul>",
        "<div class=left><button>Skip</button></div>",
        "<div class=closed><p>Closed</div>",
        "<svg><text y=20 opacity=0>Faint</text></svg>",
        "<div class=aside>Drawer</div>",
        "<p style='opacity:0'>Faint",
        "<nav class=bare aria-label=Empty></nav>",
        "<nav class='bare closed' aria-label=Closed><ul><li>In it</ul></nav>",
    ],
)
def test_what_nobody_is_shown_or_told_is_left_out(html):
    assert lines(f"<p>Here</p>{html}") == ["paragraph 'Here'"]


def test_a_landmark_without_an_area_is_shown_around_what_overflows_it():
    html = "<nav class=bare aria-label='Page tools'><ul><li><a href=/a>Edit</a><li><a href=/b>Old</a></ul></nav>"
    assert lines(html) == [
        "navigation 'Page tools'",
        "  list",
        "    link [1] 'Edit'",
        "    link [2] 'Old'",
    ]


@pytest.mark.parametrize(
    ("html", "shown"),
    [
        (
            "<input type=checkbox id=a checked style='opacity:0'><label for=a>Daily mail</label>",
            ["checkbox [1] 'Daily mail' [checked: true]"],
        ),
        (
            "<label><input type=radio aria-label=Grid style='opacity:0'><svg width=9 height=9></svg></label>",
            ["radio [1] 'Grid' [checked: false]"],
        ),
        ("<label><input type=checkbox> Weekly</label>", ["checkbox [1] 'Weekly' [checked: false]"]),
    ],
    ids=["a switch", "a picture", "a box of the browser"],
)
def test_a_label_that_stands_for_its_box_shows_its_state(html, shown):
    assert lines(html) == shown


HIDDEN = """<p>Shown 12<small>kg</small></p><a href=/a class=aside>Off</a><div class=closed><a href=/b>Cut off</a></div>
<p style='opacity:0'>Faint</p><div style='overflow:auto;height:20px'><p>First<p>Scrolled to</div>
<input type=search disabled aria-label='' placeholder=Find><p style='display:none'>Never</p>"""


def test_the_benchmark_says_why_a_text_is_not_shown_and_counts_what_has_no_reason():
    async def compare(page, observation):
        before = await beside_chromium(page, observation)
        await page.evaluate("document.body.append('Come since', document.createElement('button'))")
        return before, await beside_chromium(page, observation)

    before, after = observed(HIDDEN, compare)
    counts = {kind: found["examples"] for kind, found in before["texts_missing"].items()}
    assert counts == {"clipped": ["Cut off"], "off the page": ["Off"], "transparent": ["Faint"]}
    assert before["elements_missing"].keys() == {"clipped", "off the page"}
    assert after["texts_missing"]["unexplained"] == {"count": 1, "examples": ["Come since"]}
    assert after["elements_missing"]["unexplained"] == {"count": 1, "examples": ["button ''"]}
