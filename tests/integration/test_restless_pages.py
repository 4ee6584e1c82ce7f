"""Pages that never rest (polls, heartbeats, animations by script) settle, and send no requests for ever."""

import pytest

from tests.browsers import BROWSERS
from tests.integration.test_page_script import guarded_page
from tests.sites.server import FixtureServer, Page

BOX = """<button onclick="fetch('/content').then(r => r.text()).then(t => box.innerHTML = t)">Open</button>
    <div id=box></div>"""
PAGES = {
    "a beat after each answer": """<script>
        const beat = () => fetch('/beat?' + Math.random()).then(() => setTimeout(beat, 30)); beat();</script>""",
    "an interval of requests": """<script>setInterval(() => {
        const request = new XMLHttpRequest(); request.open('GET', '/beat?at=' + Date.now()); request.send();
        }, 40)</script>""",
    "pictures as beats": "<script>setInterval(() => { new Image().src = '/beat?' + Math.random(); }, 40)</script>",
    "a style in every frame": """<i id=bar>.</i><script>
        const turn = (time) => { bar.style.left = time + 'px'; requestAnimationFrame(turn); }; turn(0);</script>""",
    "a clock in every frame": """<i id=at>.</i><script>
        const turn = (time) => { at.textContent = time | 0; requestAnimationFrame(turn); }; turn(0);</script>""",
}
PAGES["all of them"] = "".join(PAGES.values()).replace("const turn", "var turn").replace("const beat", "var beat")


@pytest.mark.parametrize("name", PAGES)
def test_a_restless_page_settles(name):
    async def run(site):
        async with guarded_page() as page:
            first = (await page.view.goto(site.url)).snapshot
            at_rest = beats(site)
            opening = next(c.action for c in first.candidates if c.action.name == "Open")
            opened = (await page.view.act(opening)).snapshot
            return first, opened, at_rest, beats(site)

    def beats(site):
        return sum(path.startswith("/beat") for path in site.paths)

    content = Page("<p><b>Content</b></p>", content_type="text/plain")
    with FixtureServer({"/": f"<title>t</title>{BOX}{PAGES[name]}", "/content": content, "/beat": Page("{}")}) as site:
        first, opened, at_rest, later = BROWSERS.run(run(site))
    assert not first.capped
    assert not opened.capped
    assert "Content" in [segment.text for segment in opened.segments]
    if "picture" not in name and "all" not in name:
        # Those that the click let pass, since it could have caused them.
        assert later < at_rest + 60


def test_requests_that_bring_something_new_are_no_repetition():
    html = """<title>t</title><ul id=list></ul><script>
        const next = (n) => n <= 12 && fetch('/part?' + n).then((r) => r.text()).then((t) => {
          list.insertAdjacentHTML('beforeend', t); setTimeout(() => next(n + 1), 120);
        });
        next(1)</script>"""

    async def run(site):
        async with guarded_page() as page:
            return (await page.view.goto(site.url)).snapshot

    with FixtureServer({"/": html, "/part": Page("<li>Part", content_type="text/plain")}) as site:
        seen = BROWSERS.run(run(site))
    assert len([segment for segment in seen.segments if segment.text == "Part"]) == 12
