"""Pages for every combination of event type and way to register a handler, with the expected outcomes.

`EVENTS` has one page per event type with four elements: a handler as attribute, as property, by `addEventListener`, and
by a delegated listener of the document. `OTHERS` are handlers of more than one step, links in all their
forms, headers and resources, and `MUTATIONS` handlers that first want to change something at the server: those are edges
with a blocked request, and never arrive.

Left out, because exploring means using what a page shows: comments, robots.txt and site maps as sources of addresses.
Left out, because no person causes them: animation, transition and media events.
"""

from __future__ import annotations

from dataclasses import dataclass
from html import escape

from tests.sites.answers import Area, Expect, blocked, fetched, found, hidden, never, page, shows, states
from tests.sites.server import Page

#: How a handler gets there; `%s` is what it does.
WAYS = ("attribute", "property", "listener", "delegated")


@dataclass(frozen=True, slots=True)
class Event:
    """An event type and an element that it can happen to.

    Attributes
    ----------
    html : the element; `NAME` is its text, `ID` its id, `HANDLER` a place for an attribute.
    bubbles : else a delegated listener must be a capturing one.
    """

    type: str
    html: str = "<div id=ID HANDLER>NAME</div>"
    bubbles: bool = True


_FIELD = "<p><label>NAME <input id=ID HANDLER></label></p>"
_FOCUSABLE = "<div id=ID tabindex=0 HANDLER>NAME</div>"
_CHECKBOX = "<p><label><input type=checkbox id=ID HANDLER>NAME</label></p>"
_FORM = "<form id=ID action=/form-of-ID HANDLER><button>NAME</button></form>"

EVENTS = (
    Event("click"),
    Event("dblclick"),
    Event("contextmenu"),
    Event("auxclick"),
    Event("mousedown"),
    Event("mouseup"),
    Event("mouseover"),
    Event("mouseenter", bubbles=False),
    Event("mousemove"),
    Event("mouseout"),
    Event("pointerdown"),
    Event("pointerup"),
    Event("pointerenter", bubbles=False),
    Event("pointerover"),
    Event("touchstart"),
    Event("focus", _FOCUSABLE, bubbles=False),
    Event("focusin", _FIELD),
    Event("blur", _FIELD, bubbles=False),
    Event("keydown", _FIELD),
    Event("keyup", _FIELD),
    Event("keypress", _FIELD),
    Event("input", _FIELD),
    Event("change", _CHECKBOX),
    Event("beforeinput", _FIELD),
    Event("submit", _FORM),
    Event("toggle", "<details id=ID HANDLER><summary>NAME</summary>Text</details>", bubbles=False),
)

#: There is no `onfocusin` attribute or property.
_LISTENER_ONLY = frozenset({"focusin"})


def _area(event: Event) -> Area:
    """One page: the same handler in each way. It shows something, that of the attribute goes to another page."""
    path = f"/on/{event.type}"
    body, script, answers = "", "", list[Expect]()
    pages: dict[str, str] = {path: ""}
    for way in WAYS:
        if event.type in _LISTENER_ONLY and way in {"attribute", "property"}:
            continue
        name, find = f"{way} {event.type}", f"{event.type}-{way}"
        stay = "event.preventDefault();"
        do = f"{stay} say('{find}')"
        handler = ""
        if way == "attribute":
            pages[f"/to/{find}"] = found(find)
            go = escape(f"{stay} location = '/to/{find}'")
            handler = f'on{event.type}="{go}"'
        elif way == "property":
            script += f"document.getElementById('{find}').on{event.type} = event => {{ {do} }};\n"
        elif way == "listener":
            script += f"document.getElementById('{find}').addEventListener('{event.type}', event => {{ {do} }});\n"
        else:
            script += (
                f"document.addEventListener('{event.type}', event => {{ if (event.target.id === '{find}') {{ {do} }} }},"
                f" {'false' if event.bubbles else 'true'});\n"
            )
        body += event.html.replace("ID", find).replace("NAME", name).replace("HANDLER", handler) + "\n"
        answers.append(shows(find, by=name))
    pages[path] = page(f"{body}<script>{script}</script>")
    return Area(event.type, pages, tuple(answers))


MULTI_STEP = Area(
    "multi-step",
    {
        "/multi-step": page(
            """<div id=first>Makes another</div><script>
            first.addEventListener('click', () => {
              const second = document.createElement('div');
              second.textContent = 'Made by the first';
              second.addEventListener('mousedown', () => {
                const third = document.createElement('p');
                third.textContent = 'Made by the second';
                third.ondblclick = () => say('third-step');
                document.body.append(third);
              });
              document.body.append(second);
            }, { once: true });</script>"""
        )
    },
    (shows("third-step", by="Made by the second"), states("/multi-step", 4)),
)

COMPUTED = Area(
    "computed",
    {
        "/computed": page(
            """<button id=a>By arithmetic</button><button id=b>From pieces</button><button id=c>From an attribute</button>
            <ul id=menu><li id=go-seven>Seven<li id=go-eight>Eight</ul><script>
            a.onclick = () => { location = '/computed/' + 'n'.repeat(2) + (6 * 7 - 1) + String.fromCharCode(97 + 1); };
            b.onclick = () => fetch(['/computed', 'piece', 'json'].join('/').replace('/json', '.json')).then(r => r.json())
              .then(answer => { location.href = atob(answer.where); });
            c.dataset.path = '/computed/attribute';
            c.onclick = event => { location = event.currentTarget.dataset.path; };
            menu.addEventListener('click', event => say(event.target.id));</script>"""
        ),
        "/computed/nn41b": found("arithmetic"),
        # "/computed/decoded" in base 64
        "/computed/piece.json": Page('{"where": "L2NvbXB1dGVkL2RlY29kZWQ="}', content_type="application/json"),
        "/computed/decoded": found("decoded"),
        "/computed/attribute": found("from-attribute"),
    },
    (
        shows("arithmetic", by="By arithmetic"),
        shows("decoded", by="From pieces"),
        shows("from-attribute", by="From an attribute"),
        shows("go-seven", by="Seven"),
        shows("go-eight", by="Eight"),
    ),
)

LINK_FORMS = Area(
    "links",
    {
        "/links": page(
            """<base href=/links/deep/><a href=one>Relative to the base</a><a href=../two>Up from the base</a>
            <a href="?page=3">Query only</a><a href="&#47;links/four">Entity in the address</a>
            <a href="\n /links/five ">Space around the address</a><a href=//HOST/links/six>Without a scheme</a>
            <iframe srcdoc="<a href=/links/seven target=_top>In a document given as text</a>"></iframe>
            <form action=/links/eight><button>By a GET form</button></form>
            <form action=/links/nine><input type=image src=/links/button.png alt="By an image button" width=40 height=20></form>
            <button form=elsewhere formaction=/links/ten>By another form's address</button><form id=elsewhere></form>
            <script>document.querySelector('[href*=HOST]').href = `//${location.host}/links/six`;</script>"""
        ),
        "/links/deep/one": found("base-relative"),
        "/links/two": found("base-up"),
        "/links/deep/?page=3": found("query-only"),
        "/links/four": found("entity"),
        "/links/five": found("spaces"),
        "/links/six": found("no-scheme"),
        "/links/seven": found("srcdoc"),
        "/links/eight": found("get-form"),
        "/links/nine": found("image-button"),
        "/links/ten": found("form-attribute"),
        "/links/button.png": Page(b"\x89PNG", content_type="image/png"),
    },
    (
        shows("base-relative", by="Relative to the base"),
        shows("base-up", by="Up from the base"),
        shows("query-only", by="Query only"),
        shows("entity", by="Entity in the address"),
        shows("spaces", by="Space around the address"),
        shows("no-scheme", by="Without a scheme"),
        shows("srcdoc", by="In a document given as text"),
        # Forms ask; they are seen and not sent.
        hidden("get-form"),
        never("/links/eight"),
        never("/links/nine"),
        never("/links/ten"),
    ),
)

#: What a browser loads by itself to show a page; the server sees it, whether or not it is a state.
RESOURCES = Area(
    "resources",
    {
        "/resources": """<!doctype html><title>Resources</title><link rel=stylesheet href=/resources/style.css>
        <link rel=icon href=/resources/icon.svg><link rel=preload as=fetch href=/resources/preload.json crossorigin>
        <div class=pic>Picture by style</div><div style="background:url(/resources/inline.png)">Inline style</div>
        <img srcset="/resources/large.png 1x" width=20 height=20 alt=Set><picture><source srcset=/resources/source.png>
        <img width=20 height=20 alt=Source></picture><video poster=/resources/poster.png width=90 height=60></video>
        <audio controls preload=auto src=/resources/sound.wav></audio><script type=module src=/resources/module.js></script>
        <svg width=20 height=20><image href=/resources/image.png width=20 height=20 /></svg>""",
        "/resources/style.css": Page(
            "@import url(imported.css); .pic { background: url('style.png') }", content_type="text/css"
        ),
        "/resources/imported.css": Page("body { margin: 8px }", content_type="text/css"),
        "/resources/module.js": Page("import '/resources/dependency.js'", content_type="text/javascript"),
        "/resources/dependency.js": Page("new Worker('/resources/worker.js')", content_type="text/javascript"),
        "/resources/worker.js": Page("importScripts('/resources/imported.js')", content_type="text/javascript"),
        "/resources/imported.js": Page("", content_type="text/javascript"),
        **{
            f"/resources/{name}": Page(b"\x89PNG", content_type="image/png")
            for name in ("style.png", "inline.png", "large.png", "source.png", "poster.png", "image.png", "sound.wav")
        },
        "/resources/preload.json": Page("{}", content_type="application/json"),
    },
    tuple(
        fetched(f"/resources/{name}")
        for name in (
            "style.css", "imported.css", "style.png", "inline.png", "large.png", "source.png", "poster.png", "sound.wav",
            "module.js", "dependency.js", "worker.js", "imported.js", "preload.json", "image.png",
        )
    ),
)  # fmt: skip

HEADERS = Area(
    "headers",
    {
        "/headers": """<!doctype html><title>Headers</title><a href=/headers/refresh>Refresh header</a>
        <a href=/headers/redirect>Redirect with a body</a><a href=/headers/302>Found</a><a href=/headers/307>Temporary</a>
        <a href=/headers/link>Link header</a><a href=/headers/content>Content location</a>
        <a href=/headers/meta>Meta refresh</a><a href=/headers/script>Script redirect</a>""",
        "/headers/refresh": Page("<p>Wait", headers={"Refresh": "0; url=/headers/refreshed"}),
        "/headers/refreshed": found("refresh-header"),
        "/headers/redirect": Page("<a href=/headers/nowhere>x</a>", status=301, redirect="/headers/moved"),
        "/headers/moved": found("moved"),
        "/headers/302": Page(redirect="/headers/found"),
        "/headers/found": found("found-elsewhere"),
        "/headers/307": Page(status=307, redirect="/headers/temporary"),
        "/headers/temporary": found("temporary"),
        "/headers/link": Page(found("with-link-header"), headers={"Link": "</headers/linked.css>; rel=stylesheet"}),
        "/headers/linked.css": Page("", content_type="text/css"),
        "/headers/content": Page(found("content-location"), headers={"Content-Location": "/headers/canonical"}),
        "/headers/meta": "<meta http-equiv=refresh content=\"0;URL='/headers/metaed'\"><p>Wait",
        "/headers/metaed": found("meta-refresh"),
        "/headers/script": "<script>location.replace('/headers/scripted')</script>",
        "/headers/scripted": found("script-redirect"),
    },
    (
        shows("refresh-header", by="Refresh header"),
        shows("moved", by="Redirect with a body"),
        shows("found-elsewhere", by="Found"),
        shows("temporary", by="Temporary"),
        shows("with-link-header", by="Link header"),
        shows("content-location", by="Content location"),
        shows("meta-refresh", by="Meta refresh"),
        shows("script-redirect", by="Script redirect"),
    ),
)


def _mutation(name: str, method: str, script: str, html: str = "<button id=b>Goes on after NAME</button>") -> Area:
    """A handler that asks the server to change something and goes where the answer says."""
    path = f"/mutation/{name}"
    return Area(
        f"mutation-{name}",
        {
            path: page(f"{html.replace('NAME', name)}<script>const target = '{path}/target';\n{script}</script>"),
            f"{path}/target": Page('{"next": "/mutation/never"}', content_type="application/json"),
        },
        (blocked(method, f"{path}/target", by=f"Goes on after {name}"), states(path, 1)),
    )


#: Names that the hazard lexicon has nothing against: these are about the wire, not about words.
VERBS = {"one": "POST", "two": "PUT", "three": "DELETE", "four": "PATCH"}

MUTATIONS = (
    *(
        _mutation(
            f"fetch-{name}",
            method,
            f"b.onclick = async () => {{ const answer = await fetch(target, {{ method: '{method}', body: 'x' }});"
            " location = (await answer.json()).next; };",
        )
        for name, method in VERBS.items()
    ),
    *(
        _mutation(
            f"xhr-{name}",
            method,
            f"b.addEventListener('click', () => {{ const x = new XMLHttpRequest(); x.open('{method}', target);"
            " x.onload = () => { location = JSON.parse(x.response).next; }; x.send('a=1'); });",
        )
        for name, method in VERBS.items()
    ),
    _mutation(
        "div-listener",
        "POST",
        "b.addEventListener('click', () => fetch(target, { method: 'POST' }).then(r => r.json()).then(a => location = a.next))",
        "<div id=b>Goes on after NAME</div>",
    ),
    _mutation(
        "computed",
        "POST",
        "b.onclick = () => fetch(['', 'mutation', 'computed', 'target'].join('/'), { method: 'PO' + 'ST' });",
    ),
    _mutation(
        "form-by-script",
        "POST",
        "b.onclick = () => { const f = document.createElement('form'); f.method = 'post'; f.action = target;"
        " document.body.append(f); f.submit(); };",
    ),
    _mutation(
        "change",
        "POST",
        "b.onchange = () => fetch(target, { method: 'POST' });",
        "<label><input type=checkbox id=b>Goes on after NAME</label>",
    ),
    _mutation(
        "keydown",
        "POST",
        "b.onkeydown = () => fetch(target, { method: 'POST' });",
        "<label>Goes on after NAME<input id=b></label>",
    ),
)

OTHERS = (MULTI_STEP, COMPUTED, LINK_FORMS, RESOURCES, HEADERS)
AREAS = (*(_area(event) for event in EVENTS), *OTHERS, *MUTATIONS)
