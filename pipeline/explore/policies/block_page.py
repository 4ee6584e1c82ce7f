"""Detection of block pages and CAPTCHAs, which keep robots out. They are recognised, never solved.

The rules are applied in this order: response headers of protection services; marks in the document that only pages of
a protection service have; CAPTCHA widgets on pages without other fields; words, on pages with little other text. A
login form with a CAPTCHA, a page with an invisible badge and an article about robots are content.

A host that shows a block page is left alone for a while, see `waygraph.pipeline.explore.politeness`. Detection cannot
be switched off.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus

from waygraph.pipeline.browser.page.snapshot import Snapshot

#: HTTP statuses of block pages; AWS WAF uses 405 for its CAPTCHA.
_REFUSING_STATUSES = frozenset({
    HTTPStatus.FORBIDDEN, HTTPStatus.METHOD_NOT_ALLOWED, HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE,
})  # fmt: skip
#: Characters of text, and elements, that a page without other content has at most.
_MAX_BARE_CHARACTERS = 600
_MAX_BARE_ELEMENTS = 5
#: Characters of a document that is searched. Documents of protection services are smaller.
_MAX_HTML_CHARACTERS = 250_000

#: Response header, part of its value, protection service. These headers are sent with challenges only.
_HEADERS = (
    ("cf-mitigated", "challenge", "cloudflare"),
    ("x-amzn-waf-action", "", "aws-waf"),
    ("x-vercel-mitigated", "", "vercel"),
)

#: Marks of a service's own pages. A script or cookie that a service also puts into the pages it protects is no mark.
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

#: Elements that show a CAPTCHA, by opening tag or frame address. Invisible ones require no input.
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

#: Form fields for visitors to fill in, by which a page is more than a barrier.
_FIELD = re.compile(r"<(input|textarea|select)\b[^<>]{0,1000}>", re.IGNORECASE)
_NO_FIELD = re.compile(
    r"\btype=\"?(?:hidden|submit|button|image|checkbox)\b|(?:recaptcha|captcha|turnstile)-response", re.IGNORECASE
)

#: Texts that only barriers show; as the only text of a page they are a block page under any status.
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
#: Texts of refusals. Together with a text of `_SUSPECTED` the reason is that the visitor seems to be a robot, not that
#: an account lacks a permission.
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
class _PageText:
    """The parts of a page that the rules read.

    Attributes
    ----------
    text
        Title and all readable texts.
    html
        The serialised document; empty if it is not searched.
    bare
        Whether the page has little text and few elements.
    refusing
        Whether its HTTP status is one of block pages.
    """

    text: str
    html: str
    bare: bool
    refusing: bool


def needs_document(snapshot: Snapshot) -> bool:
    """Return whether `detect_block_page` needs the document of a page; if not, it need not be serialised."""
    page = _page_text(snapshot, "")
    return page.bare or page.refusing


def detect_block_page(
    snapshot: Snapshot, *, html: str = "", frames: Sequence[str] = (), headers: Mapping[str, str] | None = None
) -> str | None:
    """Return which block page or CAPTCHA a page is.

    Parameters
    ----------
    snapshot
        Snapshot of the page.
    html
        The serialised document; without it only headers, frames, status and words are read.
    frames
        URLs of the frames in the page.
    headers
        Headers of the document's response, names in lower case.

    Returns
    -------
    str | None
        Name of the protection service, or the kind of page (`challenge`, `rate-limit`, `access-denied`); None for a
        page of the site.
    """
    for name, value, service in _HEADERS:
        if headers and name in headers and value in headers[name].lower():
            return service
    if snapshot.status >= HTTPStatus.INTERNAL_SERVER_ERROR and snapshot.status != HTTPStatus.SERVICE_UNAVAILABLE:
        return None  # An error of the server, whatever the page shows.
    page = _page_text(snapshot, html if len(html) <= _MAX_HTML_CHARACTERS else "")
    if not (page.bare or page.refusing):
        return None
    return _by_marks(page, frames) or _by_words(page, snapshot.status)


def _page_text(snapshot: Snapshot, html: str) -> _PageText:
    text = " ".join([snapshot.title, *(segment.text for segment in snapshot.segments)]).replace(
        "\N{RIGHT SINGLE QUOTATION MARK}", "'"
    )
    bare = len(text) <= _MAX_BARE_CHARACTERS and len(snapshot.candidates) <= _MAX_BARE_ELEMENTS
    return _PageText(text, html, bare, snapshot.status in _REFUSING_STATUSES)


def _by_marks(page: _PageText, frames: Sequence[str]) -> str | None:
    """Return the service whose mark, or the CAPTCHA whose widget, the document or a frame has."""
    haystack = "\n".join([page.html, *frames])
    for pattern, service in _MARKS:
        if pattern.search(haystack):
            return service
    # Without the document it is unknown whether the page has other fields to fill in.
    if not page.html or any(not _NO_FIELD.search(field[0]) for field in _FIELD.finditer(page.html)):
        return None
    for pattern, widget in _WIDGETS:
        if any("invisible" not in match[0].lower() for match in pattern.finditer(haystack)):
            return widget
    return None


def _by_words(page: _PageText, status: int) -> str | None:
    """Return which kind of block page the status and the texts are of."""
    if status == HTTPStatus.TOO_MANY_REQUESTS:
        return "rate-limit"
    if not page.bare:
        return None
    if _CHALLENGES.search(page.text) or (page.refusing and _INTERSTITIAL.search(page.text)):
        return "challenge"
    if page.refusing and _REFUSED.search(page.text) and _SUSPECTED.search(page.text):
        return "access-denied"
    return None
