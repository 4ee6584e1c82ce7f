"""What is stored of a page besides its snapshot: its HTML with shadow roots, and its accessibility snapshot."""

from dataclasses import replace

import pytest

from tests.browsers import BROWSERS, LOOPBACK_ONLY
from tests.integration.test_page_script import guarded_page, names
from tests.sites.server import FixtureServer
from waygraph.core.settings import ExploreSettings
from waygraph.pipeline.browser.page.snapshot import SnapshotOptions
from waygraph.pipeline.browser.page.view import PageView

#: All shadow roots of a document: path of host names, mode and text.
_ROOTS = """doc => {
  const found = [];
  const walk = (root, path) => {
    for (const host of root.querySelectorAll("*")) {
      const inner = host.shadowRoot ?? window.closedRoots?.get(host);
      if (!inner) continue;
      const text = [...inner.childNodes].map(node => node.localName === "script" ? "" : node.textContent).join("");
      found.push([...path, host.localName, inner.mode, inner.delegatesFocus, text.trim()].join(" "));
      walk(inner, [...path, host.localName]);
    }
  };
  walk(doc, []);
  return found;
}"""


def captured(html, *clicks):
    """Return the snapshot, the capture and the page's own answer to `_ROOTS`, after clicking the named elements."""

    async def run(site):
        async with guarded_page() as page:
            seen = (await page.view.goto(site.url)).snapshot
            for name in clicks:
                seen = (await page.view.act(next(c.action for c in seen.candidates if c.action.name == name))).snapshot
            roots = await page.page.evaluate(f"() => ({_ROOTS})(document)")
            return seen, await page.capture(), roots

    with FixtureServer({"/": html}) as site:
        return BROWSERS.run(run(site))


def parsed_roots(html):
    """Return the open shadow roots of HTML that the browser parses with declarative shadow roots."""

    async def run():
        page = await (await BROWSERS.browser()).new_page()
        try:
            return await page.evaluate(f"html => ({_ROOTS})(Document.parseHTMLUnsafe(html))", html)
        finally:
            await page.close()

    return BROWSERS.run(run())


def test_stored_html_contains_open_shadow_roots_at_any_depth_and_parses_back_to_them():
    _, capture, roots = captured(
        """<!doctype html><html lang=en class="a b"><title>t</title><x-outer>Light</x-outer><div id=h></div>
        <p><template shadowrootmode=open shadowrootserializable>By the parser <slot></slot></template>In it</p><script>
        const outer = document.querySelector("x-outer").attachShadow({ mode: "open" });
        outer.innerHTML = "Outer <x-inner></x-inner><slot></slot>";
        outer.querySelector("x-inner").attachShadow({ mode: "open", delegatesFocus: true }).innerHTML = "<b>Inner</b>";
        h.attachShadow({ mode: "open" }).innerHTML = "<script>window.ran = 1<\\/script>With a script";
        </script>"""
    )
    assert len(roots) == 4
    assert parsed_roots(capture.dom) == roots
    assert capture.dom.startswith('<!DOCTYPE html><html lang="en" class="a b"><head><title>t</title>')
    assert capture.dom.endswith("</body></html>")


def test_stored_html_contains_the_closed_shadow_roots_that_scripts_and_the_parser_made():
    _, capture, _ = captured(
        """<title>t</title><x-closed></x-closed><script>
        document.querySelector("x-closed").attachShadow({ mode: "closed" }).innerHTML = "<b>By a script</b>";</script>
        <x-parsed><template shadowrootmode=closed><i>By the parser</i></template></x-parsed>"""
    )
    assert '<x-closed><template shadowrootmode="closed"><b>By a script</b></template></x-closed>' in capture.dom
    assert '<x-parsed><template shadowrootmode="closed"><i>By the parser</i></template></x-parsed>' in capture.dom


def test_a_page_that_replaces_serialisation_is_stored_all_the_same():
    _, capture, _ = captured(
        """<title>t</title><x-open></x-open><script>
        document.querySelector("x-open").attachShadow({ mode: "open" }).innerHTML = `<b>${"kept".toUpperCase()}</b>`;
        Element.prototype.getHTML = () => "Lost";</script>"""
    )
    assert "<b>KEPT</b>" in capture.dom


_IN_DIALOG = "<p>Dialog text</p><button>In the dialog</button>"


@pytest.mark.parametrize(
    ("html", "clicks"),
    [
        pytest.param(
            f'<button onclick="d.showModal()">Open</button><dialog id=d>{_IN_DIALOG}</dialog>', ("Open",), id="dialog"
        ),
        pytest.param(
            f"<button commandfor=d command=show-modal>Open</button><dialog id=d closedby=any>{_IN_DIALOG}</dialog>",
            ("Open",),
            id="command",
        ),
        pytest.param(
            f"""<button onclick="host.shadowRoot.querySelector('dialog').showModal()">Open</button><div id=host>
            <template shadowrootmode=open><a href=/x>Beside it</a><dialog>{_IN_DIALOG}</dialog></template></div>""",
            ("Open",),
            id="in-a-shadow-root",
        ),
        pytest.param(
            f"""<dialog id=second>{_IN_DIALOG}</dialog><button onclick="first.showModal()">Open</button>
            <dialog id=first><p>Behind</p><button onclick="second.showModal()">More</button></dialog>""",
            ("Open", "More"),
            id="the-later-of-two",
        ),
        pytest.param(
            f"""<button onclick="o.hidden = false">Open</button><div id=o role=dialog aria-modal=true hidden
            style="position:fixed;inset:0;background:white">{_IN_DIALOG}</div>""",
            ("Open",),
            id="aria-modal",
        ),
        pytest.param(
            f"""<button onclick="o.shadowRoot.firstChild.hidden = false">Open</button>
            <div id=o><template shadowrootmode=open><div role=dialog aria-modal=true hidden
            style="position:fixed;inset:0;background:white">{_IN_DIALOG}</div></template></div>""",
            ("Open",),
            id="aria-modal-in-a-shadow-root",
        ),
    ],
)
def test_a_modal_state_holds_the_dialog_alone(html, clicks):
    seen, capture, _ = captured(f"<title>t</title><h1>Behind</h1><a href=/rest>Behind</a>{html}", *clicks)
    assert names(seen) == ["In the dialog"]
    assert [segment.text for segment in seen.segments] == ["Dialog text", "In the dialog"]
    assert "Dialog text" in capture.aria
    assert "Behind" not in capture.aria
    assert "Beside it" not in capture.aria


def test_an_agent_is_shown_no_text_of_the_page_behind_a_dialog():
    html = """<title>t</title><div style="display: contents">Behind<x-host></x-host></div><script>
    const root = document.querySelector("x-host").attachShadow({ mode: "open" });
    root.innerHTML = "Behind too <dialog>In the dialog</dialog>";
    root.querySelector("dialog").showModal();</script>"""

    async def run(site):
        async with guarded_page() as page:
            options = SnapshotOptions.from_settings(LOOPBACK_ONLY, ExploreSettings())
            view = PageView(page.page, replace(options, outline=True), LOOPBACK_ONLY)
            return (await view.goto(site.url)).snapshot.outline

    with FixtureServer({"/": html}) as site:
        outline = BROWSERS.run(run(site))
    assert [(node.role, node.name) for node in outline] == [("dialog", ""), ("StaticText", "In the dialog")]


def test_what_a_style_sheet_makes_inert_is_no_part_of_a_page():
    seen, _, _ = captured(
        """<title>t</title><style>.off { interactivity: inert }</style><a href=/on>On</a>
        <div class=off><p>Inert text</p><a href=/off>Off</a>
        <div style="interactivity: auto"><a href=/again>Again</a></div></div>"""
    )
    assert names(seen) == ["On", "Again"]
