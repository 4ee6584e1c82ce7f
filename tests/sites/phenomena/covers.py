"""Covered elements: sticky bars, and cookie banners of several vendors and languages."""

from tests.sites.answers import Area, found, never, page, shows, states

STICKY = Area(
    "sticky-overlay",
    {
        "/sticky": """<!doctype html><title>Sticky</title><header style="position:fixed;top:0;left:0;right:0;height:60px;background:teal">Bar</header>
        <p style="margin-top:20px"><a href=/sticky/under>Link under the bar</a></p>
        <div style="height:2500px"></div><p><a href=/sticky/far>Link far below</a></p><div style="height:60px"></div>
        <footer style="position:fixed;bottom:0;left:0;right:0;height:80px;background:navy">Foot</footer>""",
        "/sticky/under": found("under-the-bar"),
        "/sticky/far": found("far-below"),
    },
    # A person scrolls until nothing covers the link. The first one can be uncovered by no scrolling: it fails.
    (shows("far-below", by="Link far below"), states("/sticky", 1)),
)


def _banner(name: str, design: str, refuse: str, link: str, html: str) -> Area:
    """A page under a banner that stays away once it was answered; `html` shows it, with `answer(choice)` as its end."""
    path = f"/banner/{name}"
    return Area(
        f"banner-{name}",
        {
            path: page(
                f"""<p><a href="{path}/inside">{link}</a></p>{html}<script>
                const answer = choice => {{
                  localStorage.setItem('banner-{name}', choice);
                  document.querySelector('{design}').remove();
                  fetch('{path}/answer?' + choice);
                }};
                if (localStorage.getItem('banner-{name}')) document.querySelector('{design}').remove();
                </script>"""
            ),
            f"{path}/inside": found(f"under-{name}"),
            f"{path}/answer": "ok",
        },
        (
            shows(f"under-{name}", by=link),
            # Refused, where that can be done at once; never accepted then; and the banner is part of no state.
            *((never(f"{path}/answer?yes"),) if refuse else ()),
            states(path, 1),
        ),
    )


_FULL = "position:fixed;inset:0;background:#fffc;z-index:9"
_BOTTOM = "position:fixed;bottom:0;left:0;right:0;height:700px;background:#eee;z-index:9"

AREAS = (
    STICKY,
    _banner(
        "english",
        "#cookie-banner",
        "Reject all",
        "Under the English banner",
        f"""<div id=cookie-banner role=dialog aria-label="Cookie consent" style="{_BOTTOM}"><p>We use cookies to improve our site.
        <button onclick="answer('yes')">Accept all</button><button onclick="answer('no')">Reject all</button></div>""",
    ),
    _banner(
        "german",
        ".cc-window",
        "Alle ablehnen",
        "Unter dem deutschen Hinweis",
        f"""<div class=cc-window style="{_FULL}"><p>Wir verwenden Cookies, um unsere Website zu verbessern.</p>
        <a role=button tabindex=0 onclick="answer('yes')">Alle akzeptieren</a>
        <a role=button tabindex=0 onclick="answer('no')">Alle ablehnen</a></div>""",
    ),
    _banner(
        "french",
        "#consent",
        "Continuer sans accepter",
        "Sous le bandeau",
        f"""<div id=consent style="{_FULL}" aria-modal=true role=dialog><p>Nous utilisons des cookies.</p>
        <button onclick="answer('no')">Continuer sans accepter</button><button onclick="answer('yes')">Tout accepter</button></div>""",
    ),
    _banner(
        "japanese",
        ".gdpr",
        "すべて拒否",
        "本文へ",
        f"""<div class=gdpr style="{_FULL}"><p>このサイトはクッキー（Cookie）を使用します。</p>
        <button onclick="answer('yes')">すべて同意する</button><button onclick="answer('no')">すべて拒否</button></div>""",
    ),
    _banner(
        "notice",
        "#notice",
        "",
        "Under a notice with one button",
        f"""<div id=notice style="{_BOTTOM}">This website uses cookies. <a href=/banner/policy>Policy</a>
        <button onclick="answer('yes')">Got it</button></div>""",
    ),
    _banner(
        "shadow",
        "x-consent",
        "Decline",
        "Under a banner in a shadow root",
        f"""<x-consent></x-consent><script>
        document.querySelector('x-consent').attachShadow({{ mode: 'open' }}).innerHTML = `<div style="{_FULL}">
        <p>Cookies and similar technologies are used here.</p><button onclick="answer('yes')">Allow all</button>
        <button onclick="answer('no')">Decline</button></div>`;</script>""",
    ),
    Area(
        "no-banner",
        {
            "/no-banner": page(
                """<h2>Cookies by the dozen</h2><p>Our bakery makes cookies.</p>
                <button onclick="say('bakery')">Got it</button>"""
            )
        },
        # Talks of cookies and has a button, and is none: nothing is pressed before the first look.
        (states("/no-banner", 2), shows("bakery", by="Got it")),
    ),
)
