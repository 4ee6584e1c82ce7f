"""Is this a page of the site, or one that keeps robots out? Block pages and CAPTCHAs are recognised, never solved.

Looked for in this order: what a protection service says of itself in a header; marks in the document that only its own
pages have; widgets that are all there is on a page; words, on pages that hold next to nothing else. A login form with
a CAPTCHA, a page with an invisible badge and an article about robots are content.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pipeline.browser.snapshot import Snapshot

#: HTTP statuses that block pages come with; AWS WAF uses 405 for its CAPTCHA.
_REFUSING = frozenset({403, 405, 429, 503})
_TOO_MANY_REQUESTS, _UNAVAILABLE, _SERVER_ERROR = 429, 503, 500
#: A page that keeps people out has little text and little to click.
_SHORT_CHARACTERS = 600
_FEW_ELEMENTS = 5
#: Documents of protection services are small. A larger one is somebody's page.
_LONGEST_HTML = 250_000

#: Response header, what its value holds, whose it is. Sent with challenges only.
_HEADERS = (
    ("cf-mitigated", "challenge", "cloudflare"),
    ("x-amzn-waf-action", "", "aws-waf"),
    ("x-vercel-mitigated", "", "vercel"),
)

#: Marks of a service's own pages. What it also puts into the pages that it protects (a script, a cookie) is no mark.
_MARKS = tuple(
    (re.compile(pattern, re.IGNORECASE), name)
    for pattern, name in (
        (r"window\._cf_chl_opt|/cdn-cgi/challenge-platform/h/\w/orchestrate|id=\"challenge-form\"", "cloudflare"),
        (r"id=\"cf-(?:error-details|wrapper)\"[^<>]{0,200}>|cf-browser-verification", "cloudflare"),
        (r"//(?:geo|ct|ct2)\.captcha-delivery\.com/", "datadome"),
        (r"id=\"px-captcha|//captcha\.px-c(?:dn|loud)\.net/", "perimeterx"),
        (r"id=\"sec-(?:if-)?cpt-(?:container|if)\"|//errors\.edgesuite\.net/", "akamai"),
        (r"/_Incapsula_Resource\?[^\"]{0,500}SWUDNSAI=|Incapsula incident ID", "imperva"),
        (r"window\.gokuProps\b", "aws-waf"),
        (r"id=\"anubis_challenge\"", "anubis"),
        (r"/149e9513-01fa-4fb0-aad4-566afd725d1b/", "kasada"),
        (r"//check\.ddos-guard\.net/|id=\"ddg-captcha\"", "ddos-guard"),
        (r"Sucuri WebSite Firewall", "sucuri"),
        (r"The requested URL was rejected\. Please consult with your administrator", "f5"),
        (r"Your access to this (?:site|service) has been limited by the site owner", "wordfence"),
    )
)

#: Elements that show a CAPTCHA, by opening tag or frame address. Invisible ones ask nothing of anybody.
_WIDGETS = tuple(
    (re.compile(pattern, re.IGNORECASE), name)
    for pattern, name in (
        (r"<[^<>]{0,500}\bclass=\"[^\"<>]{0,300}\bg-recaptcha\b[^<>]{0,500}>", "recaptcha"),
        (
            r"//(?:www\.)?(?:google\.com|recaptcha\.net)/recaptcha/(?:api2|enterprise)/anchor[^\"<>]{0,1000}",
            "recaptcha",
        ),
        (r"<[^<>]{0,500}\bclass=\"[^\"<>]{0,300}\bh-captcha\b[^<>]{0,500}>", "hcaptcha"),
        (r"//(?:newassets\.)?hcaptcha\.com/captcha/[^\"<>]{0,1000}", "hcaptcha"),
        (r"<[^<>]{0,500}\bclass=\"[^\"<>]{0,300}\bcf-turnstile\b[^<>]{0,500}>", "turnstile"),
        (r"//challenges\.cloudflare\.com/cdn-cgi/challenge-platform/[^\"<>]{0,1000}", "turnstile"),
        (r"//[\w.-]{0,100}(?:arkoselabs|funcaptcha)\.com/fc/[^\"<>]{0,1000}", "arkose"),
        (r"<[^<>]{0,500}\bclass=\"[^\"<>]{0,300}\bgeetest_(?:captcha|holder)\b[^<>]{0,500}>", "geetest"),
        (r"<[^<>]{0,500}\bclass=\"[^\"<>]{0,300}\bfrc-captcha\b[^<>]{0,500}>", "friendly-captcha"),
    )
)

#: Fields that somebody is meant to fill in, so that the page is more than a barrier.
_FIELD = re.compile(r"<(input|textarea|select)\b[^<>]{0,1000}>", re.IGNORECASE)
_NO_FIELD = re.compile(
    r"\btype=\"?(?:hidden|submit|button|image|checkbox)\b|(?:recaptcha|captcha|turnstile)-response", re.IGNORECASE
)

#: What only barriers say to their reader; as a whole page they keep somebody out under any status.
_CHALLENGES = re.compile(
    r"(?:verify|confirm|prove)(?:ing)? (?:that )?you(?:'re| are)(?: not)? (?:a )?(?:human|robot|bot)"
    r"|making sure you(?:'re| are) not a (?:ro)?bot"
    r"|checking (?:if the site connection is secure|your browser)"
    r"|enable javascript and cookies to continue"
    r"|unusual traffic from your (?:computer )?network"
    r"|(?:complete|pass) (?:the|this|a) (?:security check|captcha)"
    r"|press (?:&|and) hold to confirm"
    r"|security checkpoint"
    r"|best[äa]tigen sie, dass sie (?:ein mensch|kein roboter) sind"
    r"|v[ée]rifiez que vous [êe]tes (?:un )?humain|confirmez que vous n'[êe]tes pas un robot"
    r"|verifi(?:ca|que) que (?:eres|es|usted es)(?: un)? humano|verifica di essere umano"
    r"|verifique se voc[êe] [ée] humano"
    r"|подтвердите, что вы не робот|请(?:完成|进行)(?:安全)?验证|人机验证|あなたが人間であることを確認",
    re.IGNORECASE,
)
_INTERSTITIAL = re.compile(r"just a moment|attention required|one moment, please|please wait while", re.IGNORECASE)
#: Refused: not that a person lacks a permission, but that the visitor seems to be a machine.
_REFUSED = re.compile(
    r"access (?:is |was |has been )?(?:denied|blocked|limited|restricted)|(?:you have been|you've been|request) blocked"
    r"|too many requests|rate limit|captcha|are you a robot|zugriff verweigert|acc[èe]s refus[ée]|acceso denegado",
    re.IGNORECASE,
)
_SUSPECTED = re.compile(
    r"\b(?:robots?|bots?|automat(?:ed|ion)|crawler|scrap(?:er|ing)|suspicious|unusual|malicious|firewall|security"
    r"|(?:your )?ip(?: address)?|ray id|(?:reference|incident|request|support) ?(?:#|id|number|code)"
    r"|reference|traffic|captcha|too many requests|rate limit)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class _Page:
    """What is weighed: `text` is all that people can read, `bare` says that this is little."""

    text: str
    html: str
    bare: bool
    refusing: bool


def needs_source(seen: Snapshot) -> bool:
    """Whether `detect` can find anything in this page's document; it need not be fetched otherwise."""
    page = _weigh(seen, "")
    return page.bare or page.refusing


def detect(
    seen: Snapshot, *, html: str = "", frames: Sequence[str] = (), headers: Mapping[str, str] | None = None
) -> str | None:
    """Who keeps us out, when `seen` is a block page or a CAPTCHA: the service's name, or what the page does.

    Parameters
    ----------
    html : the serialised document; without it only headers, frames, status and words are looked at.
    frames : addresses of the frames in the page.
    headers : of the document's answer, in lower case.

    """
    for name, value, service in _HEADERS:
        if headers and name in headers and value in headers[name].lower():
            return service
    if seen.status >= _SERVER_ERROR and seen.status != _UNAVAILABLE:
        return None  # broken, whatever the page says
    page = _weigh(seen, html if len(html) <= _LONGEST_HTML else "")
    if not (page.bare or page.refusing):
        return None
    return _by_marks(page, frames) or _by_words(page, seen.status)


def _weigh(seen: Snapshot, html: str) -> _Page:
    text = " ".join([seen.title, *(segment.text for segment in seen.segments)]).replace(
        "\N{RIGHT SINGLE QUOTATION MARK}", "'"
    )
    bare = len(text) <= _SHORT_CHARACTERS and len(seen.candidates) <= _FEW_ELEMENTS
    return _Page(text, html, bare, seen.status in _REFUSING)


def _by_marks(page: _Page, frames: Sequence[str]) -> str | None:
    haystack = "\n".join([page.html, *frames])
    for pattern, service in _MARKS:
        if pattern.search(haystack):
            return service
    # Whether there is something else to do than to prove that one is human, only the document can tell.
    if not page.html or any(not _NO_FIELD.search(field[0]) for field in _FIELD.finditer(page.html)):
        return None
    for pattern, widget in _WIDGETS:
        if any("invisible" not in found[0].lower() for found in pattern.finditer(haystack)):
            return widget
    return None


def _by_words(page: _Page, status: int) -> str | None:
    if status == _TOO_MANY_REQUESTS:
        return "rate-limit"
    if not page.bare:
        return None
    if _CHALLENGES.search(page.text) or (page.refusing and _INTERSTITIAL.search(page.text)):
        return "challenge"
    if page.refusing and _REFUSED.search(page.text) and _SUSPECTED.search(page.text):
        return "access-denied"
    return None
