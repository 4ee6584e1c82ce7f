"""Client-side routing: pages that change their URL without loading a document."""

from tests.sites.answers import Area, found, page, shows, states

HISTORY = Area(
    "history-routing",
    {
        path: page(
            """<nav><a href=/history/list>List view</a><a href=/history/item/7>Item view</a></nav><main id=out></main><script>
            const views = { '/history': 'history-home', '/history/list': 'history-list', '/history/item/7': 'history-item' };
            const show = () => { out.replaceChildren(); say(views[location.pathname] || 'history-unknown'); };
            document.addEventListener('click', event => {
              const link = event.target.closest('a');
              if (!link) return;
              event.preventDefault(); history.pushState({}, '', link.href); show();
            });
            addEventListener('popstate', show); show();</script>"""
        )
        for path in ("/history", "/history/list", "/history/item/7")
    },
    (
        shows("history-home"),
        shows("history-list", by="List view"),
        shows("history-item", by="Item view"),
        states("/history", 1),
        states("/history/list", 1),
        states("/history/item/7", 1),
    ),
)

HASH = Area(
    "hash-routing",
    {
        "/hash": page(
            """<nav><a href=#/list>Hash list</a><a href=#!/about>Bang about</a><a href=#section>Section</a></nav>
            <main id=out></main><h2 id=section>Section</h2><script>
            const views = { '': 'hash-home', '#/list': 'hash-list', '#!/about': 'hash-about' };
            const show = () => { if (location.hash !== '#section') { out.replaceChildren(); say(views[location.hash]); } };
            addEventListener('hashchange', show); show();</script>"""
        )
    },
    (
        shows("hash-home"),
        shows("hash-list", by="Hash list"),
        shows("hash-about", by="Bang about"),
        # A fragment that only scrolls names no other state.
        states("/hash", 1),
        states("/hash#/list", 1),
        states("/hash#!/about", 1),
    ),
)

PARAMETERS = Area(
    "fragment-parameters",
    {
        "/parameters": """<!doctype html><title>Parameters</title><a href="/parameters/app#tab=two">Tab two</a>
            <a href="/parameters/app#View:uri=three">View three</a> <a href="/parameters/app#!four">Bang four</a>
            <a href="/parameters/app#?page=five&amp;part=6">Page five</a> <a href="/parameters/app#part">A part</a>""",
        "/parameters/app": page(
            """<main id=out></main><h2 id=part>Part</h2><script>
            const views = { '': 'parameters-home', '#tab=two': 'tab-two', '#View:uri=three': 'view-three', '#!four': 'bang-four',
              '#?page=five&part=6': 'page-five' };
            const show = () => { out.replaceChildren(); say(views[location.hash === '#part' ? '' : location.hash]); };
            addEventListener('hashchange', show); show();</script>"""
        ),
    },
    (
        shows("tab-two", by="Tab two"),
        shows("view-three", by="View three"),
        shows("bang-four", by="Bang four"),
        shows("page-five", by="Page five"),
        shows("parameters-home", by="A part"),
        states("/parameters/app", 1),
    ),
)

REPLACE = Area(
    "replace-state",
    {
        "/replace": page(
            """<button onclick="history.replaceState({}, '', '/replace?view=2'); say('replaced')">Replace the address</button>
            <button onclick="location.assign('/replace/assigned')">Assign</button>
            <button onclick="location.replace('/replace/replaced')">Replace</button>"""
        ),
        "/replace/assigned": found("assigned"),
        "/replace/replaced": found("location-replaced"),
    },
    (
        shows("replaced", by="Replace the address"),
        shows("assigned", by="Assign"),
        shows("location-replaced", by="Replace"),
        states("/replace", 1),
        states("/replace?view=2", 1),
    ),
)

AREAS = (PARAMETERS, HISTORY, HASH, REPLACE)
