"""Constructions that name elements: one page has all of them; the browser's own accessibility tree has the answers.

`{t}` in the HTML of a construction stands for the attribute that marks the element in question, `{n}` for a number that
makes its ids, classes and tags distinct. `OURS` lists where the project's role or name differs on purpose, and why.
"""

from __future__ import annotations

from collections.abc import Collection

_SIZED = "style='display: inline-block; width: 99px; height: 9px'"


def _internals(code: str, content: str = "", attributes: str = "") -> str:
    """Return a custom element that sets properties of its internals."""
    return (
        f"<x-{{n}} {{t}} {_SIZED} {attributes}>{content}</x-{{n}}><script>customElements.define('x-{{n}}', class extends HTMLElement"
        " { static formAssociated = true; constructor() { super(); const internals = this.attachInternals(); "
        f"{code} }} }})</script>"
    )


def _shadow(inner: str, light: str = "", attributes: str = "", *, then: str = "", mode: str = "mode: 'open'") -> str:
    """Return an element with a shadow root; `then` is a script that knows it as `root`."""
    return (
        f"<div id=host{{n}} {attributes}>{light}</div><script>{{ const root = host{{n}}.attachShadow({{ {mode} }});"
        f" root.innerHTML = `{inner}`; {then} }}</script>"
    )


def _css(rule: str, html: str = "<button {t} class=c{n}></button>") -> str:
    """Return an element with a rule for its class, whose selector is `.c` with what `rule` begins with."""
    return f"<style>.c{{n}}{rule}</style>{html}"


def _referring(label: str, own: str = "") -> str:
    """Return a button that refers to an element with the id `a` and a number."""
    return f"{label}<button {{t}} aria-labelledby=a{{n}}>{own}</button>"


_SVG = "data:image/svg+xml,<svg xmlns='http://www.w3.org/2000/svg' width='9' height='9'/>"
_SELECT = "<style>.s{n}, .s{n}::picker(select) { appearance: base-select }</style><select class=s{n} "
_MARKED = "document.querySelector('[data-testid=n{n}]')"

CONSTRUCTIONS = {
    # references by element
    "elements": "<i id=a{n}>Delete my account</i><button {t}></button><script>" + _MARKED + ".ariaLabelledByElements = [a{n}]</script>",
    "elements out of a root": "<i id=a{n}>Outside</i>" + _shadow(
        "<button {t}></button>", then="root.querySelector('button').ariaLabelledByElements = [a{n}]"),
    "elements into a root": _shadow("<i>Inside</i>", then=_MARKED + ".ariaLabelledByElements = [root.firstChild]").replace(
        "<div", "<button {t}>own</button><div", 1),
    "elements: a host": "<button {t}></button>" + _shadow("<i>Inside</i>", then=_MARKED + ".ariaLabelledByElements = [root.host]"),
    "elements: none": "<button {t} aria-label=Label>own</button><script>" + _MARKED + ".ariaLabelledByElements = []</script>",
    "elements: detached": "<button {t}>own</button><script>" + _MARKED
        + ".ariaLabelledByElements = [document.createElement('i')]</script>",
    # internals
    "internals: role and label": _internals("internals.role = 'button'; internals.ariaLabel = 'Delete my account'"),
    "internals: role": _internals("internals.role = 'button'", "Delete it"),
    "internals: attributes win": _internals("internals.role = 'link'; internals.ariaLabel = 'Inner'", "", "role=button aria-label=Outer"),
    "internals: elements": "<i id=a{n}>By element</i>" + _internals(
        "internals.role = 'button'; internals.ariaLabelledByElements = [a{n}]; internals.ariaLabel = 'Label'"),
    "internals: elements before a label": "<i id=a{n}>By element</i>" + _internals(
        "internals.role = 'button'; internals.ariaLabelledByElements = [a{n}]", "", "aria-label=Label"),
    "internals: invalid role first": _internals("internals.role = 'foo button'", "Delete"),
    "internals inside a name": "<button {t}>Go <x-{n}></x-{n}></button><script>customElements.define('x-{n}', class extends HTMLElement"
        " { constructor() { super(); Object.assign(this.attachInternals(), {role: 'img', ariaLabel: 'there'}) } })</script>",
    "internals: hidden": "<button {t}>Go <x-{n}>there</x-{n}></button><script>customElements.define('x-{n}', class extends HTMLElement"
        " { constructor() { super(); this.attachInternals().ariaHidden = 'true' } })</script>",
    "internals: label element": "<label for=a{n}>Delete my account</label>" + _internals("internals.role = 'button'", "", "id=a{n}"),
    "internals: title": _internals("internals.role = 'button'", "", "title=Tip"),
    # reference targets
    "reference target": _shadow("<i>no</i><i id=x>Target</i>", mode="mode: 'open', referenceTarget: 'x'")
        + "<button {t} aria-labelledby=host{n}></button>",
    "label of a reference target": "<label for=host{n}>Delete my account</label>" + _shadow(
        "<button {t} id=x></button>", mode="mode: 'open', referenceTarget: 'x'"),
    # generated content
    "content: alternative": _css('::before { content: "x" / "Delete my account" }'),
    "content: text": _css('::before { content: "Delete my account" }'),
    "content: picture": _css('::before { content: url("data:image/svg+xml,<svg/>") / "Delete" }'),
    "content: empty alternative": _css('::before { content: "x" / "" }', "<button {t} class=c{n}>Delete</button>"),
    "content: attribute": _css("::after { content: attr(data-n) '!' }", "<button {t} class=c{n} data-n='Delete it'></button>"),
    "content: alternative of parts": _css('::before { content: "De" "lete" / "Erase " }', "<button {t} class=c{n}>it</button>"),
    "content: block": _css("::before { content: 'Delete'; display: block }", "<button {t} class=c{n}>it</button>"),
    "content: inline": _css("::before { content: 'Begin' }", "<button {t} class=c{n}>it</button>"),
    "content: invisible": _css("::before { content: 'no'; visibility: hidden }", "<button {t} class=c{n}>it</button>"),
    "content: escapes": _css(r"::before { content: 'say \"\\41 \" \\\\' }", "<button {t} class=c{n}></button>"),
    "content of a child": _css('::after { content: "" / "Delete my account" }', "<button {t}><i class=c{n}></i></button>"),
    "content instead of an element": _css(f' {{ content: url("{_SVG}") / "Delete my account" }}', "<button {t}><i class=c{n}>old</i></button>"),
    "content instead, no alternative": _css(f' {{ content: url("{_SVG}") }}', "<button {t}><i class=c{n}>old</i>new</button>"),
    "content of an image": _css(f' {{ content: url("{_SVG}") / "Style" }}', "<button {t}><img class=c{n} alt=Attribute></button>"),
    "content: icon font": _css(r"::before { content: '\f014' }", "<button {t} class=c{n}>Bin</button>"),
    "content: sign beside text": _css("::after { content: ' +' }", "<button {t} class=c{n}>More</button>"),
    "content: sign alone": _css("::after { content: '\U0001f5d1' }", "<button {t} class=c{n} title=no> </button>"),
    "content: counter": _css("::before { counter-increment: c; content: counter(c) '. ' }", "<button {t} class=c{n}>it</button>"),
    "content: quotes": _css("::before { content: open-quote }", "<button {t} class=c{n}>it</button>"),
    "content of a marker": _css(" { display: list-item } .c{n}::marker { content: 'x' / 'no' }", "<button {t}>it<i class=c{n}></i></button>"),
    # slots
    "slot": _shadow("<button {t}><slot></slot></button>", "Delete my account"),
    "slot: fallback": _shadow("<button {t}><slot>Delete <b>it</b></slot></button>"),
    "slot: named": _shadow("<button {t}><slot name=n></slot> it</button>", "<b slot=n>Delete</b><i>no</i>"),
    "slot: nested": _shadow("<div><slot></slot></div>", "Delete my account",
        then="root.firstChild.attachShadow({mode: 'open'}).innerHTML = '<button {t}><slot></slot></button>'"),
    "slot in a named host": _shadow("before <slot></slot> after", "Light", "role=button {t}"),
    "no slot": _shadow("Shadow", "Light", "role=button {t}"),
    "root inside a name": _shadow("<b>shadow</b>", "").replace("<div id=host{n} ></div>", "<button {t}>a <div id=host{n}></div></button>"),
    "closed root": _shadow("<button {t}><slot></slot></button>", "Delete my account", mode="mode: 'closed'",
        then="host{n}.closed = root"),
    # references by id
    "ids in a root": _shadow("<i id=a{n}>Inside</i><button {t} aria-labelledby=a{n}></button>"),
    "ids across roots": "<i id=a{n}>Outside</i>" + _shadow("<button {t} aria-labelledby=a{n}>own</button>"),
    "ids of slotted elements": _shadow("<slot></slot>", "<button {t} aria-labelledby=a{n}></button><i id=a{n}>Slotted</i>"),
    "ids: hidden": _referring("<i id=a{n} hidden>Delete <b style='display: none'>my</b> account</i>"),
    "ids: hidden part": _referring("<i id=a{n}>Delete <b style='display: none'>my</b> account</i>"),
    "ids: aria-hidden": _referring("<i id=a{n} aria-hidden=true>Delete <b aria-hidden=true>my</b> account</i>"),
    "ids: aria-hidden part": _referring("<i id=a{n}>Delete <b aria-hidden=true>my</b> account</i>"),
    "ids: hidden with aria-hidden part": _referring("<i id=a{n} hidden>Delete <b aria-hidden=true>my</b> account</i>"),
    "ids: invisible": _referring("<i id=a{n} style='visibility: hidden'>Delete <b style='visibility: visible'>my</b> account</i>"),
    "ids: hidden blocks": _referring("<div id=a{n} hidden><p>One</p><p>Two</p></div>"),
    "ids: in a hidden box": _referring("<div hidden><i id=a{n}>Delete</i></div>"),
    "ids: label": _referring("<i id=a{n} aria-label='Delete it'>x</i>"),
    "ids: image": _referring("<img id=a{n} alt=Delete src=data:,>"),
    "ids: field": _referring("<input id=a{n} value='Delete it'>"),
    "ids: list": _referring("<select id=a{n}><option>One<option selected>Two</select>"),
    "ids: slider": _referring("<i role=slider id=a{n} aria-valuetext=five aria-label=volume></i>"),
    "ids: password": _referring("<input type=password id=a{n} value=secret>"),
    "ids: table": _referring("<table id=a{n}><caption>Caption</caption><tr><td>x</table>"),
    "ids: svg": _referring("<svg id=a{n} width=9 height=9><title>Delete</title></svg>"),
    "ids: title": _referring("<i id=a{n} title='Delete it'></i>"),
    "ids: content": _css("::before { content: 'Delete' }", _referring("<i id=a{n} class=c{n}></i>")),
    "ids: itself": "<button {t} id=a{n} aria-label=Delete aria-labelledby='a{n} b{n}'>x</button><i id=b{n}>it</i>",
    "ids: chain": _referring("<i id=a{n} aria-labelledby=b{n}>First</i><i id=b{n}>Second</i>"),
    "ids: missing": "<button {t} aria-labelledby=none{n}>own</button>",
    "ids: empty": _referring("<i id=a{n}></i>", "own"),
    "ids: twice": "<i id=a{n}>A</i><button {t} aria-labelledby='a{n} a{n}'></button>",
    "ids: inert": _referring("<i id=a{n} inert>Inert</i>"),
    # labels
    "label of a button": "<label for=a{n}>Delete my account</label><button {t} id=a{n}></button>",
    "label before content": "<label for=a{n}>Delete my account</label><button {t} id=a{n}>OK</button>",
    "label around a button": "<label>Delete <button {t}>own</button></label>",
    "two labels": "<label for=a{n}>Delete</label><label for=a{n}>my account</label><button {t} id=a{n}></button>",
    "label: hidden": "<label for=a{n} hidden>no</label><button {t} id=a{n}></button>",
    "label: aria-hidden": "<label for=a{n} aria-hidden=true>no</label><button {t} id=a{n}></button>",
    "label: transparent": "<label for=a{n} style='opacity: 0'>Label</label><input {t} id=a{n}>",
    "label: references": "<label for=a{n} aria-labelledby=b{n}>x</label><i id=b{n}>Label</i><input {t} id=a{n}>",
    "label: title": "<label for=a{n} title=Label></label><input {t} id=a{n}>",
    "label: content": _css("::before { content: 'Delete' }", "<label class=c{n} for=a{n}></label><button {t} id=a{n}></button>"),
    "label: submit": "<label for=a{n}>Delete my account</label><input type=submit {t} id=a{n}>",
    "label: field": "<label><input type=checkbox {t}> Flash <input value=3> times</label>",
    "label: list": "<label><input type=checkbox {t}> Flash <select><option>One<option selected>Two</select> times</label>",
    "label: range": "<label><input type=checkbox {t}> Flash <input type=range max=10 value=4> times</label>",
    "label: roles": "<label><input type=checkbox {t}> Flash <i role=slider aria-valuenow=5 aria-valuetext=five></i> times</label>",
    "label: its own field": "<label>Flash <input {t} value=3> times</label>",
    "label of a switch": "<label>Alarm <button {t} role=switch></button></label>",
    # fields
    "placeholder": "<input {t} placeholder=Hint>",
    "title before placeholder": "<input {t} placeholder=Hint title=Tip>",
    "aria-placeholder": "<input {t} aria-placeholder=Hint>",
    "field without a name": "<input {t} name=city>",
    "submit": "<input type=submit {t}>", "submit: title": "<input type=submit {t} title=Tip>", "reset": "<input type=reset {t}>",
    "button: title": "<input type=button {t} title=Tip>", "button: value": "<button {t} value=Value></button>",
    "image button": "<input type=image {t} alt=Delete title=Tip value=Value>",
    "image button: value": "<input type=image {t} value=Value title=Tip>", "image button: none": "<input type=image {t}>",
    "file": "<input type=file {t}>", "files": "<input type=file multiple {t}>", "file: label": "<label>Picture <input type=file {t}></label>",
    "checkbox: title": "<input type=checkbox {t} title=Tip>", "suggestions": "<input {t} list=a{n} aria-label=x><datalist id=a{n}></datalist>",
    "textarea": "<label for=a{n}>Text</label><textarea {t} id=a{n}>value</textarea>", "number": "<input type=number {t} title=Tip>",
    "date": "<input type=date {t} title=Tip>", "list: title": "<select {t} title=Tip><option>o</select>",
    "list: box": "<select {t} size=3 title=Tip><option>o</select>",
    "checkbox: role and content": "<div {t} role=checkbox tabindex=0>Delete it</div>",
    "textbox: content": "<div {t} role=textbox tabindex=0 aria-label=Text>content</div>",
    "editable": "<div {t} contenteditable aria-label=Text>content</div>",
    # options
    "selected content": _SELECT + "{t} aria-label=Choice><button><selectedcontent></selectedcontent></button><option>Delete</select>",
    "option: elements": _SELECT + "><option {t}><b>Delete</b> <img alt='my account' src=data:,></option></select>",
    "option: hidden parts": _SELECT + "><option {t}>Delete <i hidden>it</i><i aria-hidden=true>no</i></option></select>",
    "option: plain": "<select><option {t}><b>Delete</b> <img alt=no src=data:,></option></select>",
    "option: label": "<select><option {t} label=Label>text</option></select>",
    "option: aria-label": "<select><option {t} aria-label=Label>text</option></select>",
    # content
    "image": "<a href=/x {t}><img alt='Delete my account' src=data:,></a>",
    "image in text": "<button {t}>A<img alt=B src=data:,>C</button>",
    "image: no alternative": "<a href=/x {t} title=Tip><img src=data:, alt='' width=9 height=9></a>",
    "image: decoration with a title": "<button {t}><img src=data:, alt='' title=no></button>",
    "image: title": "<button {t}><img title=Delete src=data:,></button>",
    "image: no role": "<button {t}>a<img role=none alt=no src=data:,></button>",
    "label of a child": "<button {t}><i aria-label=Delete>x</i> it</button>",
    "reference of a child": "<button {t}><i aria-labelledby=a{n}>x</i> it</button><i id=a{n}>Delete</i>",
    "picture of a child": "<button {t}><i role=img aria-label=Delete></i></button>",
    "aria-hidden child": "<button {t}>Go <i aria-hidden=true>no</i></button>", "hidden child": "<button {t}>Go <i hidden>no</i></button>",
    "invisible child": "<button {t}>Go <i style='visibility: hidden'>no <b style='visibility: visible'>there</b></i></button>",
    "transparent child": "<button {t}>Go <i style='opacity: 0'>no</i></button>",
    "clipped child": "<button {t}><i style='position: absolute; clip: rect(0 0 0 0)'>Delete</i></button>",
    "unrendered child": "<button {t}>Go <i style='content-visibility: hidden; display: block'>no</i></button>",
    "inert child": "<button {t}>Go <i inert>no</i></button>", "child without a box": "<button {t}>Go <i style='display: contents'>there</i></button>",
    "blocks": "<button {t}><div>a</div><div>b</div></button>", "inline": "<button {t}><i>a</i><b>b</b></button>",
    "inline blocks": "<button {t}>x<i style='display: inline-block'>a</i>b</button>",
    "floats": "<button {t}>x<i style='float: left'>a</i><i style='position: absolute'>b</i>c</button>",
    "grid": "<a href=/x {t} style='display: inline-grid'><i>a</i><i>b</i>c</a>", "break": "<button {t}>a<br>b</button>",
    "chance of a break": "<button {t}>web<wbr>site</button>", "upper case": "<button {t} style='text-transform: uppercase'>Delete</button>",
    "comment": "<button {t}>De<!-- c -->lete</button>", "unseen tags": "<button {t}>a<script>1</script><style>x {}</style></button>",
    "ruby": "<button {t}><ruby>漢<rp>(</rp><rt>kan</rt><rp>)</rp></ruby></button>",
    "table": "<a href=/x {t}><table><tr><td>a<td>b<tr><td>c</table></a>", "list of items": "<button {t}><ul><li>a<li>b</ul></button>",
    "field inside": "<div {t} role=button>a<input value=v aria-label=no>b</div>",
    "field inside: label": "<div {t} role=button>a<input aria-label=Label>b</div>",
    "field inside: hint": "<div {t} role=button>a<input placeholder=Hint>b</div>",
    "password inside": "<div {t} role=button>a<input type=password value=secret>b</div>",
    "checkbox inside": "<div {t} role=button>a<input type=checkbox aria-label=c>b</div>",
    "list inside": "<div {t} role=button>a<select aria-label=no><option>one<option selected>two</select>b</div>",
    "text area inside": "<div {t} role=button>a<textarea>v</textarea>b</div>",
    "button inside": "<div {t} role=link>a<button>b</button>c</div>", "listbox inside":
        "<div {t} role=button>a<div role=listbox><div role=option aria-selected=true>one</div><div role=option>two</div></div></div>",
    "menu inside": "<button {t}>Menu<div role=menu><div role=menuitem>no</div></div></button>",
    "items below": "<ul role=tree><li {t} role=treeitem>Branch<ul role=group><li role=treeitem>Leaf</ul></ul>",
    "article inside": "<a href=/x {t}>Read <article>Delete it</article></a>",
    "closed details inside": "<div {t} role=button><details><summary>Sum</summary>no</details></div>",
    "popover inside": "<div {t} role=button>X<div popover>no</div></div>",
    "frame inside": "<div {t} role=button>a<iframe title=Frame></iframe></div>",
    "canvas inside": "<a href=/x {t}><canvas width=9 height=9>Delete</canvas></a>",
    "owned": "<button {t} aria-owns=a{n}>own</button><i id=a{n}>owned</i>",
    "owned by another": "<button {t}>own<i id=a{n}>no</i></button><div aria-owns=a{n}></div>",
    "title": "<button {t} title='Delete my account'></button>", "title and content": "<button {t} title=Tip>Content</button>",
    "title of a child": "<button {t}><i title='Delete my account'></i></button>",
    "blank label": "<button {t} aria-label='  '>Content</button>", "spaces": "<button {t} aria-label='  a   b '>Content</button>",
    "braille": "<button {t} aria-braillelabel=b>Content</button>", "role description": "<button {t} aria-roledescription=r>Content</button>",
    "description": "<button {t} aria-description=Delete></button>",
    # SVG
    "svg: title": "<button {t}><svg width=9 height=9><title>Delete</title><rect width=9 height=9 /></svg></button>",
    "svg: title of a part": "<button {t}><svg width=9 height=9><g><title>Delete</title><rect width=9 height=9 /></g></svg></button>",
    "svg: text": "<button {t}><svg width=9 height=9><text y=9>Delete</text></svg></button>",
    "svg: title before text": "<button {t}><svg width=9 height=9><title>Title</title><text y=9>Text</text></svg></button>",
    "svg: description": "<button {t}><svg width=9 height=9><desc>no</desc></svg></button>",
    "svg: use": "<svg style='display: none'><symbol id=a{n}><title>Delete</title><path d='M0 0h9'/></symbol></svg>"
        "<button {t}><svg width=9 height=9><use href=#a{n} /></svg></button>",
    "svg: link": "<svg width=99 height=20><a {t} href=/x><title>Title</title><text y=9>Text</text></a></svg>",
    "svg: link by XLink": "<svg width=99 height=20><a {t} xlink:href=/x xlink:title=Title><rect width=9 height=9 /></a></svg>",
    "svg: picture": "<svg {t} role=img width=9 height=9><title>Delete</title></svg>",
    # roles
    "role list": "<div {t} role='foo button link'>X</div>", "invalid role": "<button {t} role=foo>X</button>",
    "abstract role": "<button {t} role='widget command'>X</button>", "upper-case role": "<div {t} role=BUTTON>X</div>",
    "no role, focusable": "<button {t} role=none>X</button>", "no role, link": "<a {t} role=presentation href=/x>X</a>",
    "no role, heading": "<h2 {t} role=none tabindex=0>X</h2>", "no role, global attribute": "<h2 {t} role=none aria-live=polite>X</h2>",
    "image role": f"<div {{t}} {_SIZED} role=image aria-label=X></div>", "note reference": "<a {t} role=doc-noteref href=/x>1</a>",
    "tab": "<div {t} role=tab>X</div>", "menu item": "<div {t} role=menuitem><img alt=X src=data:,></div>",
    "summary": "<details><summary {t}>Sum <b>mary</b></summary>x</details>",
    "link without an address": "<a {t} onclick=1>X</a>", "clicked box": "<div {t} onclick=1>X</div>",
    "clicked box: label": f"<div {{t}} {_SIZED} onclick=1 aria-label=X></div>", "option without a list": "<div {t} role=option>X</div>",
    # structure
    "heading": "<h2 {t}>A <a href=/x>B</a></h2>", "fieldset": "<fieldset {t}><legend>Legend</legend>x</fieldset>",
    "table: caption": "<table {t}><caption>Caption</caption><tr><th>x<td>y</table>",
    "table: summary": "<table {t} summary=Summary title=Tip><tr><th>x<td>y</table>",
    "figure": "<figure {t}><img alt=x src=data:,><figcaption>Caption</figcaption></figure>",
    "region": "<section {t} title=Tip>X</section>", "region: role": "<div {t} role=region aria-label=X>Y</div>",
    "navigation": "<nav {t} title=Tip>X</nav>", "group": "<div {t} role=group title=Tip>X</div>", "img": "<img {t} alt=X width=9 height=9>",
    "frame": "<iframe {t} title=Frame></iframe>", "dialog": "<dialog {t} open aria-label=X style='position: static'>Y</dialog>",
}  # fmt: skip

_DECORATION = "what an icon font draws is no text, and signs beside a text show a state or a position"
_KEPT = "elements that are clicked or edited without having a role are named and known by what they show"
_NO_ROLE = "no role of WAI-ARIA: the browser has names of its own for such elements"
#: Ours where it differs from the browser's: role, name, and why.
OURS = {
    "content: icon font": ("button", "Bin", _DECORATION),
    "content: quotes": ("button", "it", _DECORATION),
    "content: sign beside text": ("button", "More", _DECORATION),
    "content: counter": ("button", "it", _DECORATION),
    "transparent child": ("button", "Go", "a hidden tooltip keeps the text that it showed last"),
    "chance of a break": ("button", "website", "a chance to break a line is no space"),
    "upper case": ("button", "Delete", "a style of letters, not another text"),
    "article inside": (
        "link",
        "Read Delete it",
        "cards are links around an article, whose text is all that names them",
    ),
    "title of a child": ("button", "Delete my account", "what the pointer shows names an icon (AccName, 2I)"),
    "field without a name": ("textbox", "city", "a field that nothing names is known by the name that it sends"),
    "date": ("textbox", "Tip", _NO_ROLE),
    "summary": ("button", "Sum mary", _NO_ROLE),
    "note reference": ("link", "1", "a role of DPUB-ARIA stands for the role that it refines"),
    "editable": ("textbox", "Text", _KEPT),
    "clicked box": ("", "X", _KEPT),
    "clicked box: label": ("", "X", _KEPT),
    "option without a list": ("option", "X", _KEPT),
    "link without an address": ("", "X", "the browser looks for listeners, which cannot be known in a caller's page"),
}


def naming_page(names: Collection[str] = CONSTRUCTIONS) -> str:
    """Return a page with these constructions, each in a region that has its number as its name."""
    parts = [
        f"<section aria-label=n{number}>"
        + html.replace("{t}", f"data-testid=n{number}").replace("{n}", str(number))
        + "</section>"
        for number, (name, html) in enumerate(CONSTRUCTIONS.items())
        if name in names
    ]
    return "<!doctype html><title>Names</title>" + "\n".join(parts)


def pressed_page(names: Collection[str]) -> str:
    """Return a page with these constructions and a harmless button; each requests its number when it is pressed."""
    return (
        naming_page(names)
        + """<button data-testid=harmless>Harmless</button><script>addEventListener("click", (event) => {
        const element = event.composedPath().find((each) => each.dataset?.testid);
        if (element) fetch(`/pressed/${element.dataset.testid}`);
        event.preventDefault();
        }, true)</script>"""
    )
