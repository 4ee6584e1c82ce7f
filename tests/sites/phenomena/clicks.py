"""Clickable elements that are neither link nor button, and elements that look clickable and must be skipped."""

from tests.sites.answers import Area, found, hidden, page, shows, skipped, states
from tests.sites.server import Page

LISTENER_ONLY = Area(
    "listener-only",
    {
        "/listener-only": page(
            """<div id=a>Plain box with a listener</div><p id=b>Paragraph with a property</p>
            <script>a.addEventListener('click', () => say('by-listener')); b.onclick = () => say('by-property');</script>"""
        )
    },
    (
        shows("by-listener", by="Plain box with a listener"),
        shows("by-property", by="Paragraph with a property"),
        states("/listener-only", 3),
    ),
)

POINTER = Area(
    "cursor-pointer",
    {
        "/cursor-pointer": page(
            """<style>.go { cursor: pointer }</style><div class=go>Pointer <b>box</b></div><script>
            document.addEventListener('click', e => e.target.closest('.go') && say('by-pointer'))</script>"""
        )
    },
    (shows("by-pointer", by="Pointer box"), states("/cursor-pointer", 2)),
)

DELEGATED = Area(
    "delegated",
    {
        "/delegated": page(
            """<ul id=list><li data-go=one>Row one<li data-go=two>Row two</ul><div id=card><span>Card text</span></div><script>
            list.addEventListener('click', e => say('row-' + e.target.dataset.go));
            document.addEventListener('click', e => e.target.closest('#card') && say('card'));</script>"""
        )
    },
    # Nothing but the listener above them says that rows can be clicked.
    (shows("row-one", by="Row one"), shows("row-two", by="Row two"), shows("card", by="Card text")),
)

AREA_MAP = Area(
    "area-map",
    {
        "/area-map": """<!doctype html><title>Map</title><img src=/area-map/dot.svg usemap=#m width=200 height=100 alt=Plan>
        <map name=m><area shape=rect coords=0,0,100,100 href=/area-map/left alt="Left room">
        <area shape=circle coords=150,50,40 href=/area-map/right alt="Round room"></map>""",
        "/area-map/dot.svg": Page(
            "<svg xmlns='http://www.w3.org/2000/svg' width='200' height='100'/>", content_type="image/svg+xml"
        ),
        "/area-map/left": found("area-rect"),
        "/area-map/right": found("area-circle"),
    },
    (shows("area-rect", by="Left room"), shows("area-circle", by="Round room")),
)

SVG_LINKS = Area(
    "svg-links",
    {
        "/svg-links": """<!doctype html><title>SVG</title><svg width=300 height=100 xmlns:xlink='http://www.w3.org/1999/xlink'>
        <a href=/svg-links/plain><rect width=100 height=80 fill=teal /><text y=95>Plain SVG link</text></a>
        <a xlink:href=/svg-links/xlink><rect x=150 width=100 height=80 fill=navy /><text x=150 y=95>XLink SVG link</text></a>
        </svg>""",
        "/svg-links/plain": found("svg-link"),
        "/svg-links/xlink": found("svg-xlink"),
    },
    (shows("svg-link", by="Plain SVG link"), shows("svg-xlink", by="XLink SVG link")),
)

OUT_OF_REACH = Area(
    "out-of-reach",
    {
        "/out-of-reach": page(
            """<button disabled onclick="say('disabled')">Disabled button</button>
            <fieldset disabled><button onclick="say('fieldset')">In a disabled fieldset</button></fieldset>
            <a role=link aria-disabled=true onclick="say('aria-disabled')">Aria disabled</a>
            <div inert><button onclick="say('inert')">Inert button</button></div>
            <div aria-hidden=true><button onclick="say('aria-hidden')">Aria hidden</button></div>
            <div style="display:none"><button onclick="say('undisplayed')">Not displayed</button></div>
            <div style="visibility:hidden"><button onclick="say('invisible')">Not visible</button></div>
            <button style="position:absolute;left:-9999px" onclick="say('off-page')">Off the page</button>"""
        )
    },
    (
        skipped("disabled", by="Disabled button"),
        skipped("disabled", by="In a disabled fieldset"),
        skipped("disabled", by="Aria disabled"),
        *(hidden(name) for name in ("disabled", "fieldset", "aria-disabled", "inert", "aria-hidden", "undisplayed",
                                    "invisible", "off-page")),
        states("/out-of-reach", 1),
    ),
)  # fmt: skip

SCHEMES = Area(
    "schemes",
    {
        "/schemes": page(
            """<a href=mailto:a@example.org>Mail</a> <a href=tel:123>Call</a> <a href="javascript:say('script-url')">Script link</a>
            <a href=# onclick="say('hash-link'); return false">Bare hash</a> <a href=OTHER/elsewhere>Elsewhere</a>
            <a onclick="say('anchor-without-href')">Anchor without address</a>"""
        )
    },
    (
        skipped("scheme", by="Mail"),
        skipped("scheme", by="Call"),
        skipped("external", by="Elsewhere"),
        shows("script-url", by="Script link"),
        shows("hash-link", by="Bare hash"),
        shows("anchor-without-href", by="Anchor without address"),
        states("/schemes", 4),
    ),
)

AREAS = (LISTENER_ONLY, POINTER, DELEGATED, AREA_MAP, SVG_LINKS, OUT_OF_REACH, SCHEMES)
