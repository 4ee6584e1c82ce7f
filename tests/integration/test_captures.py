"""What is stored of a page besides its snapshot: its HTML with shadow roots, and its accessibility snapshot."""

from dataclasses import replace

import pytest

from tests.browsers import BROWSERS, LOOPBACK_ONLY
from tests.integration.test_page_script import guarded_page, names
from tests.sites.server import FixtureServer
from waygraph.core.settings import ExploreSettings
from waygraph.demo_site import DemoSite
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


# ---- the accessibility snapshot is in Playwright's format ----

#: Every role, state and property of the format, and what YAML has to quote.
_ROLES_AND_STATES = """<!doctype html><title>t</title>
<style>.sign::after { content: " \\2192" } .gone { display: none }</style>
<header><nav aria-label=Main><ul><li><a href=/a?b=c>First</a><li><a href="data:text/plain,abc">Second</a></ul></nav>
</header>
<main><h1>Prices: all of them</h1><h2 class=sign>Next</h2><div role=heading aria-level=5>Five</div>
<p>Some <b>bold</b> and <em>stressed</em>, <strong>strong</strong>, <code>code</code>, <del>old</del> <ins>new</ins>
text,
H<sub>2</sub>O, m<sup>2</sup>, <mark>marked</mark> at <time>noon</time>.</p><blockquote>Quoted</blockquote><hr>
<dl><dt>Term</dt><dd>Its definition</dd></dl><figure>Figure</figure><article>Article</article><aside>Aside</aside>
<section aria-label=Part>In a region</section><section>In none</section><search>Search</search><ol><li>One<li>Two</ol>
<img alt=Picture src=data:,><img alt="" src=data:,><img src=data:,><svg width=9 height=9></svg>
<table><caption>Table</caption><thead><tr><th>A<th scope=col>B<tbody><tr><th>Row<td>1<tr><td><td></table>
<table role=grid><tr><td>In a grid</table><table role=presentation><tr><td>Layout</table><ul role=none><li>Plain</ul>
<form aria-label=Form><label>Name <input placeholder=Hint></label><input placeholder=Only>
<input value=Typed title=Title>
<label for=q>Find</label><input id=q type=search><input type=number value=3 aria-label=Count>
<input type=range aria-label=Range>
<label><input type=checkbox checked> Yes</label><label><input type=checkbox> No</label>
<input type=checkbox aria-label=Part id=part>
<input type=radio aria-label=Radio checked><input type=file><input type=submit>
<input type=button value=Press disabled>
<textarea aria-label=Area aria-invalid=true>Lines of
text</textarea><input aria-label=Spelling aria-invalid=spelling><input list=known aria-label=Combo>
<datalist id=known></datalist>
<select aria-label=Chosen><option>x<option selected>y<option disabled>z</select>
<select multiple size=2 aria-label=Many>
<option selected>m</select><fieldset><legend>Group</legend><button>In it</button></fieldset><output>Status</output>
</form>
<button aria-expanded=true>Open</button><button aria-expanded=false>Closed</button>
<button aria-pressed=true>Pressed</button>
<button aria-pressed=mixed>Mixed</button><div aria-disabled=true><button>Off</button></div>
<meter value=.5>Meter</meter>
<progress aria-label=Progress value=.5></progress><div role=tablist><div role=tab aria-selected=true>Tab</div></div>
<div role=switch aria-checked=true>Switch</div><div role=menu>
<div role=menuitemcheckbox aria-checked=mixed>Item</div></div>
<div role=tree><div role=treeitem aria-level=2 aria-expanded=true aria-selected=true>Leaf</div></div>
<div role=status></div>
<p hidden>Hidden</p><p class=gone>Gone</p><p style="visibility: hidden">Invisible</p>
<p aria-hidden=true>Decoration</p>
<div style="display: contents"><p>In no box</p></div><div style="position: absolute; left: -999px">Out of view</div>
<p>- list</p><p>key: value</p><p>"quoted"</p><p># comment</p><p>3.50</p><p>yes</p><p>{braces}</p><p>it's</p>
<p>a #b</p><p>[x]</p>
<p>soft&shy;ly zero&#8203;width</p><a href="#it's: here">Text: it's</a><iframe title=Frame srcdoc="<p>In a frame">
</iframe>
<x-open>Slotted</x-open></main><footer>Footer</footer><script>part.indeterminate = true;
document.querySelector("x-open").attachShadow({ mode: "open" }).innerHTML = "Before <b><slot></slot>
</b> after";</script>"""


async def both_snapshots(page):
    """Return the stored accessibility snapshot of a page, and Playwright's."""
    return (await page.capture()).aria, await page.page.locator("body").aria_snapshot()


def test_the_accessibility_snapshot_is_the_one_that_playwright_takes():
    async def run(site):
        async with guarded_page() as page:
            await page.view.goto(site.url)
            return await both_snapshots(page)

    with FixtureServer({"/": _ROLES_AND_STATES}) as site:
        ours, theirs = BROWSERS.run(run(site))
    assert ours.splitlines() == theirs.splitlines()
    assert len(ours.splitlines()) > 120


def test_the_accessibility_snapshots_of_the_demo_shop_are_those_that_playwright_takes():
    async def run(url):
        async with guarded_page() as page:
            pairs = {}
            for path in ("", "c/lighting", "p/ember-table-lamp", "cart", "help", "search?q=lamp"):
                assert (await page.view.goto(url + path)).snapshot.status == 200
                pairs[path] = await both_snapshots(page)
            return pairs

    with DemoSite() as shop:
        pairs = BROWSERS.run(run(shop.url))
    for path, (ours, theirs) in pairs.items():
        assert ours.splitlines() == theirs.splitlines(), path


@pytest.mark.parametrize(
    ("html", "expected"),
    [
        pytest.param(
            "<details open><summary>More</summary>Text</details>",
            ["- group:", '  - button "More" [expanded]', "  - text: Text"],
            id="a-summary-is-a-control",
        ),
        pytest.param("<p>Here</p><p inert>Gone</p>", ["- paragraph: Here"], id="what-is-inert-is-left-out"),
        pytest.param(
            "<div><template shadowrootmode=closed><button>In it</button></template></div>",
            ['- button "In it"'],
            id="closed-shadow-roots-are-seen",
        ),
        pytest.param(
            "<input type=password aria-label=Password value=secret>",
            ['- textbox "Password": ••••••'],
            id="passwords-are-masked",
        ),
        pytest.param(
            "<p style='visibility: hidden'>Hidden <b style='visibility: visible'>Shown</b></p>",
            ["- text: Shown"],
            id="what-is-visible-in-what-is-not",
        ),
        pytest.param(
            "<select aria-label=L><optgroup label=G><option>O</select>",
            ['- combobox "L":', '  - group "G":', '    - option "O" [selected]'],
            id="groups-of-options-have-their-labels",
        ),
        pytest.param(
            "<fieldset disabled>Text</fieldset>", ["- group [disabled]: Text"], id="groups-are-disabled",
        ),
        pytest.param(
            "<div contenteditable aria-label=Note>Written</div>",
            ['- textbox "Note": Written'],
            id="text-that-can-be-edited",
        ),
    ],
)  # fmt: skip
def test_where_playwright_differs_from_the_browser_the_snapshot_follows_the_browser(html, expected):
    async def run(site):
        async with guarded_page() as page:
            await page.view.goto(site.url)
            return await both_snapshots(page)

    with FixtureServer({"/": f"<!doctype html><title>t</title><body>{html}"}) as site:
        ours, theirs = BROWSERS.run(run(site))
    assert ours.splitlines() == expected
    assert ours != theirs, "it is no longer different"


@pytest.mark.parametrize(
    ("html", "expected"),
    [
        pytest.param(
            "<div><template shadowrootmode=open><summary role=button>More</summary></template></div>",
            '- button "More"',
            id="summary-below-a-shadow-root",
        ),
        pytest.param("<svg><optgroup></optgroup></svg><p>After</p>", "- paragraph: After", id="drawing-of-a-field"),
    ],
)
def test_an_odd_page_is_stored_all_the_same(html, expected):
    _, capture, _ = captured(f"<!doctype html><title>t</title><body>{html}")
    assert expected in capture.aria
    assert capture.dom


def test_a_frameset_has_an_accessibility_snapshot():
    with FixtureServer({"/": "<title>t</title><frameset cols=50%,50%><frame src=/a><frame src=/b></frameset>",
                        "*": "<p>Frame"}) as site:  # fmt: skip

        async def run():
            async with guarded_page() as page:
                await page.view.goto(site.url)
                return (await page.capture()).aria

        assert BROWSERS.run(run()).splitlines() == ["- iframe", "- iframe"]
