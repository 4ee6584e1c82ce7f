"""Cross-origin frames: frames of another host in scope are captured, a frame of a host out of scope is not.

`FRAMED` is explored with the host behind `OTHER` in scope; `THIRD` is a host out of scope, `OWN` the page's own host.
"""

from __future__ import annotations

from dataclasses import replace

from tests.sites.answers import Area, Expect, blocked, found, hidden, page, shows, skipped, states
from tests.sites.server import Answer, FixtureServer

_PANEL = page(
    """<p>Panel text</p><button onclick="say('panel-button')">Panel button</button>
    <a href=/panel/next>Within the panel</a> <a href=/panel/page target=_top>Out of the panel</a>
    <a href=THIRD/away target=_top>Away from the site</a>
    <button onclick="fetch('/panel/changed', { method: 'POST' })">Panel change</button>
    <button onclick="parent.postMessage('hello', '*')">Tell the page</button>
    <button onclick="setTimeout(() => say('panel-late'), 800)">Late in the panel</button>
    <button onclick="alert('From the panel'); say('panel-alert')">Panel alert</button>
    <div id=m style="width:300px;border:1px solid">Panel menu</div>
    <label>Panel field <input id=f></label><iframe src=OWN/framed/inner width=300 height=80></iframe>
    <div style="height:1800px"></div><button onclick="say('panel-far')">Far down in the panel</button><script>
    m.addEventListener('mouseenter', () => say('panel-hovered', m));
    m.addEventListener('mouseleave', () => m.querySelector('f-panel-hovered')?.remove());
    f.addEventListener('input', () => say('panel-typed'));</script>"""
)

FRAMED = Area(
    "framed",
    {
        "/framed": page(
            """<h2>Ours</h2><button onclick="w.contentWindow.postMessage('ask', '*')">Ask the panel</button>
            <div style="height:1500px"></div><iframe id=w src=OTHER/panel width=700 height=2300></iframe>
            <iframe srcdoc="<button onclick=&quot;document.body.insertAdjacentHTML('beforeend',
              '<f-boxed style=display:block>found: boxed</f-boxed>')&quot;>Boxed button</button>" sandbox=allow-scripts></iframe>
            <iframe src=THIRD/theirs></iframe><script>
            addEventListener('message', e => e.data === 'hello' && setTimeout(() => say('told'), 700));</script>"""
        ),
        "/framed/inner": page("<button onclick=\"say('home-again')\">Home in a foreign frame</button>"),
    },
    (
        shows("panel-button", by="Panel button"),
        shows("panel-next", by="Within the panel"),
        shows("panel-page", by="Out of the panel"),
        skipped("external", by="Away from the site"),
        blocked("POST", "/panel/changed", by="Panel change"),
        shows("told", by="Tell the page"),
        shows("panel-late", by="Late in the panel"),
        shows("panel-alert", by="Panel alert"),
        shows("panel-hovered", by="Panel menu"),
        shows("panel-typed", by="Panel field"),
        shows("home-again", by="Home in a foreign frame"),
        shows("panel-far", by="Far down in the panel"),
        shows("panel-asked", by="Ask the panel"),
        shows("boxed", by="Boxed button"),
        hidden("theirs"),
        # As it is, and what every action but the link out of it shows.
        states("/framed", 12),
    ),
    other={
        "/panel": _PANEL.replace(
            "</script>",
            "</script><script>addEventListener('message', () => setTimeout(() => say('panel-asked'), 600));</script>",
            1,
        ),
        "/panel/next": found("panel-next"),
        "/panel/page": found("panel-page"),
    },
)

THEIRS: dict[str, Answer] = {
    "/theirs": page("<button onclick=\"say('theirs')\">Their button</button>"),
    "/away": found("theirs"),
}


def framed(site: FixtureServer, other: FixtureServer, third: FixtureServer, *, host: str) -> Area:
    """The area with addresses; the other origin is reached by the name `host`, on a port of its own."""
    addresses = {
        "OTHER": other.url.rstrip("/").replace("127.0.0.1", host),
        "THIRD": third.url.rstrip("/"),
        "OWN": site.url.rstrip("/"),
    }

    def resolved(pages: dict[str, Answer]) -> dict[str, Answer]:
        for word, address in addresses.items():
            pages = {
                path: each.replace(word, address) if isinstance(each, str) else each for path, each in pages.items()
            }
        return pages

    third.pages.update(THEIRS)
    return replace(FRAMED, pages=resolved(dict(FRAMED.pages)), other=resolved(dict(FRAMED.other or {})))


def expected() -> tuple[Expect, ...]:
    """What exploring it finds."""
    return FRAMED.expected
