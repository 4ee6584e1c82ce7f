"""Site whose pages ask for more than a plain visit needs: prefetches, prerendering, lazy frames, sends on sight.

Known answer: no request with a `Sec-Purpose` header arrives, none for `/private` (robots.txt) or `/logout`, and of the
addresses below `/unasked` only the two that are links. Of what scrolling causes nothing is sent by POST.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from tests.sites.server import Answer, FixtureServer, Page

ROBOTS = "User-agent: *\nDisallow: /private"


def rules(name: str, kind: str = "prefetch", eagerness: str = "immediate") -> str:
    """Return speculation rules for one address."""
    return json.dumps({kind: [{"urls": [f"/unasked/{name}"], "eagerness": eagerness}]})


def script(content: str) -> str:
    """Return an element with speculation rules."""
    return f"<script type=speculationrules>{content}</script>"


_ADDS = "const rules = (name, kind) => { const s = document.createElement('script'); s.type = 'speculationrules';"
_ADDS += " s.textContent = JSON.stringify({[kind ?? 'prefetch']: [{urls: ['/unasked/' + name],"
_ADDS += " eagerness: 'immediate'}]}); return s; };"

#: Ways to make the browser load a page ahead of time: head and body of a page, by name.
SPECULATION: Mapping[str, str] = {
    "immediate": script(rules("immediate")),
    "prerender": script(rules("prerender", "prerender")),
    "upper-case": f"<SCRIPT TYPE=SpeculationRules>{rules('upper-case')}</SCRIPT>",
    "written": f"<script>document.write(`<script type=speculationrules>{rules('written')}</` + 'script>')</script>",
    "appended": f"<script>{_ADDS} document.head.append(rules('appended'))</script>",
    "text-later": f"<script>{_ADDS} {{ const s = rules('text-later'), text = s.textContent; s.textContent = '';"
    " document.head.append(s); setTimeout(() => s.append(text), 20) }</script>",
    "in-fragment": "<script>document.head.append(document.createRange().createContextualFragment("
    f"`<p><script type=speculationrules>{rules('in-fragment')}</` + 'script>'))</script>",
    "in-shadow-root": f"<div id=host></div><script>{_ADDS} document.querySelector('#host').attachShadow({{mode: 'open'}})"
    ".append(rules('in-shadow-root'))</script>",
    "every-link": '<a href="/unasked/every-link">A link</a>'
    + script('{"prefetch": [{"where": {"href_matches": "/unasked/*"}, "eagerness": "eager"}]}'),
    "on-hover": '<a href="/unasked/on-hover">Hovered</a>' + script(rules("on-hover", "prerender", "moderate")),
    "logout": script('{"prefetch": [{"urls": ["/logout"], "eagerness": "immediate"}]}'),
    "forbidden": script('{"prefetch": [{"urls": ["/private/1"], "eagerness": "immediate"}]}'),
    "link": "<link rel=prefetch href=/unasked/link>",
    "link-forbidden": "<link rel=prefetch href=/private/2>",
    "preload-forbidden": "<link rel=preload as=fetch href=/private/3 crossorigin>",
    "link-prerender": "<link rel=prerender href=/unasked/link-prerender>",
}  # fmt: skip

#: Only the egress proxy stops these: scripts of ours are not told of a root that the parser makes. Inside TLS they pass.
PROXIED = "".join(
    f"<div><template shadowrootmode={mode}>{script(rules(mode))}</template></div>" for mode in ("open", "closed")
)

#: What scripts such as instant.page and Turbo prefetch when the pointer is over a link.
_ON_HOVER = """<script>addEventListener("mouseover", ({target}) => {
  if (!target.matches?.("a")) return;
  document.head.insertAdjacentHTML("beforeend", `<link rel=prefetch href="/unasked/hovered">`);
  fetch("/later", {headers: {"X-Sec-Purpose": "prefetch"}}).catch(() => {});
  fetch("/private/4", {headers: {"X-Sec-Purpose": "prefetch"}}).catch(() => {});
  fetch("/logout?hovered", {headers: {"X-Sec-Purpose": "prefetch"}}).catch(() => {});
})</script>"""

#: What a visit without scrolling does not send; the page is far longer than the window.
_SCROLLED = """<div style="height: 6000px"></div>
<iframe loading=lazy src=/private/lazy></iframe><iframe loading=lazy src=/posts></iframe><p id=end>The end</p>
<script>
  fetch("/list", {method: "POST", body: "page=1"});
  new IntersectionObserver((entries) => {
    if (entries.some((entry) => entry.isIntersecting)) fetch("/seen", {method: "POST", body: "end"});
  }).observe(document.querySelector("#end"));
</script>"""


def pages(*, is_tls: bool = False) -> dict[str, Answer]:
    """Return the pages of the site; `is_tls` leaves out what cannot be stopped inside TLS."""
    parts = "".join(SPECULATION.values()) + ("" if is_tls else PROXIED)
    return {
        "/robots.txt": Page(ROBOTS, content_type="text/plain"),
        "/": Page(
            f"<!doctype html><title>Start</title><h1>Start</h1>{parts}<p><a href=/long>Long</a> <a href=/hover>Hover</a></p>"
            f'<button onclick="{_ADDS} document.head.append(rules(`clicked`))">More</button>',
            headers={"Speculation-Rules": '"/rules.json"'},
        ),
        "/rules.json": Page(rules("header"), content_type="application/speculationrules+json"),
        "/long": f"<!doctype html><title>Long</title><h1>Long</h1>{_SCROLLED}",
        "/hover": f"<!doctype html><title>Hover</title><h1>Hover</h1><a href=/>Start</a>{_ON_HOVER}",
        "/posts": "<script>fetch('/sent-by-lazy-frame', {method: 'POST', body: 'x=1'})</script>",
        "/list": Page("[]", content_type="application/json"),
        "/unasked/every-link": "<h1>Every link</h1>",
        "/unasked/on-hover": "<h1>On hover</h1>",
    }


class UnaskedSite(FixtureServer):
    """Serves `pages` and keeps which requests were for later: those with a `Sec-Purpose` header."""

    def __init__(self, *, is_tls: bool = False) -> None:
        super().__init__({})
        self.speculative: list[str] = []
        self.pages = {path: self._noting(answer) for path, answer in pages(is_tls=is_tls).items()}
        self.pages["*"] = self._noting(Page("<h1>Not found</h1>", status=404))

    def _noting(self, answer: Answer) -> Answer:
        def note(request):
            if any(name.lower() == "sec-purpose" for name in request.headers):
                self.speculative.append(request.target)
            return answer

        return note
