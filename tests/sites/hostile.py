"""Hostile site: every technique by which a page can send a state-changing request, once each.

Known answer: in the modes `strict` and `guard`, `HostileSite.changes` stays empty for every action; without a guard
every name in `SENDERS` and `ON_LOAD` reaches a server.
"""

from __future__ import annotations

import threading
from contextlib import ExitStack
from types import TracebackType
from typing import Self

from websockets.exceptions import ConnectionClosed
from websockets.sync.server import ServerConnection, serve

from tests.sites.server import Answer, FixtureServer, Page
from waygraph.demo_site.local_server import Request

#: Scripts that send something: `T` is the target of the vector (an absolute URL), `S` the same of a WebSocket server,
#: `O` another origin.
SENDERS = {
    "fetch": "fetch(T, {method: 'POST', body: 'x'})",
    "fetch-no-cors": "fetch(T, {method: 'POST', body: 'x', mode: 'no-cors'})",
    "keepalive": "fetch(T, {method: 'POST', body: 'x', keepalive: true})",
    "xhr": "const r = new XMLHttpRequest(); r.open('PUT', T); r.send('x')",
    "form": "document.body.insertAdjacentHTML('beforeend', `<form id=f method=post action='${T}'></form>`); f.submit()",
    "form-request": "document.body.insertAdjacentHTML('beforeend', `<form id=f method=post action='${T}'></form>`);"
    " f.requestSubmit()",
    "form-new-tab": "document.body.insertAdjacentHTML('beforeend',"
    " `<form id=f method=post target=_blank action='${T}'></form>`); f.submit()",
    "form-native": "const f = document.createElement('form'); f.method = 'post'; f.action = T; document.body.append(f);"
    " const i = document.createElement('iframe'); document.body.append(i);"
    " i.contentWindow.HTMLFormElement.prototype.submit.call(f)",
    "form-native-tab": "const f = document.createElement('form'); f.method = 'post'; f.action = T; f.target = '_blank';"
    " document.body.append(f); const i = document.createElement('iframe'); document.body.append(i);"
    " i.contentWindow.HTMLFormElement.prototype.submit.call(f)",
    "popup-form": "const w = window.open('/blank'); if (w) setTimeout(() => { try {"
    " w.document.body.innerHTML = `<form method=post action='${T}'></form>`;"
    " w.document.forms[0].submit() } catch {} }, 300)",
    "popup-page": "window.open('/posts-on-load?to=' + encodeURIComponent(T))",
    "popup-native": "const i = document.createElement('iframe'); document.body.append(i);"
    " i.contentWindow.open('/posts-on-load?to=' + encodeURIComponent(T), '_blank')",
    "beacon": "navigator.sendBeacon(T, 'x')",
    "ping": "const a = document.createElement('a'); a.href = '#there'; a.ping = T; a.textContent = 'x';"
    " document.body.append(a); a.click()",
    "unload-beacon": "addEventListener('pagehide', () => navigator.sendBeacon(T, 'x')); location = '/left'",
    "unload-keepalive": "addEventListener('pagehide', () => fetch(T, {method: 'POST', body: 'x', keepalive: true}));"
    " location = '/left'",
    "unload-xhr": "addEventListener('beforeunload', () => { const r = new XMLHttpRequest(); r.open('POST', T);"
    " r.send('x') }); location = '/left'",
    "fetch-later": "if (window.fetchLater) fetchLater(T, {method: 'POST', body: 'x', activateAfter: 0})",
    "socket": "const s = new WebSocket(S); s.onopen = () => s.send('x')",
    "socket-frame": "const i = document.createElement('iframe'); document.body.append(i);"
    " const s = new i.contentWindow.WebSocket(S); s.onopen = () => s.send('x')",
    "worker": "new Worker('/worker.js#' + T)",
    "worker-blob": "new Worker(URL.createObjectURL(new Blob([`fetch('${T}', {method: 'POST', body: 'x'})`])))",
    "worker-data": "new Worker(`data:text/javascript,fetch('${T}', {method: 'POST', body: 'x', mode: 'no-cors'})`)",
    "worker-module": "new Worker('/worker.js#' + T, {type: 'module'})",
    "worker-xhr": "new Worker('/worker-xhr.js#' + T)",
    "worker-nested": "new Worker('/worker-nested.js#' + T)",
    "worker-import": "new Worker('/worker-import.js#' + T)",
    "worker-socket": "new Worker('/worker-socket.js#' + S)",
    "shared-worker": "new SharedWorker('/worker.js#' + T)",
    "shared-worker-socket": "new SharedWorker('/worker-socket.js#' + S)",
    "frame": "const i = document.createElement('iframe'); i.src = '/posts-on-load?to=' + encodeURIComponent(T);"
    " document.body.append(i)",
    "frame-form": "const i = document.createElement('iframe'); i.src = '/submits-on-load?to=' + encodeURIComponent(T);"
    " document.body.append(i)",
    "frame-srcdoc": "const i = document.createElement('iframe');"
    " i.srcdoc = `<script>fetch('${T}', {method: 'POST', body: 'x', mode: 'no-cors'})</` + 'script>';"
    " document.body.append(i)",
    "frame-other": "const i = document.createElement('iframe'); i.src = O + 'posts-on-load?to=' +"
    " encodeURIComponent(T); document.body.append(i)",
    "frame-other-form": "const i = document.createElement('iframe'); i.src = O + 'submits-on-load?to=' +"
    " encodeURIComponent(T); document.body.append(i)",
    "frame-other-worker": "const i = document.createElement('iframe'); i.src = O + 'worker-on-load?to=' +"
    " encodeURIComponent(T); document.body.append(i)",
    "frame-other-unload": "const i = document.createElement('iframe'); i.src = O + 'unload?to=' +"
    " encodeURIComponent(T); i.onload = () => i.remove(); document.body.append(i)",
    "frame-nested": "const i = document.createElement('iframe'); i.src = O + 'frame-on-load?to=' +"
    " encodeURIComponent(T); document.body.append(i)",
    "prerender": "const s = document.createElement('script'); s.type = 'speculationrules';"
    " s.textContent = JSON.stringify({prerender: [{source: 'list', eagerness: 'immediate',"
    " urls: ['/posts-on-load?to=' + encodeURIComponent(T)]}]}); document.head.append(s)",
    "service-worker": "navigator.serviceWorker.register('/service-worker.js').then(r => {}, () => {})",
    "navigation-api": "navigation.addEventListener('navigate', e => e.canIntercept && e.intercept({handler: () =>"
    " fetch(T, {method: 'POST', body: 'x'}) }), {once: true}); navigation.navigate('#moved')",
    "view-transition": "document.startViewTransition(() => fetch(T, {method: 'POST', body: 'x'}))",
    "csp-report": "const i = document.createElement('iframe'); i.src = '/reports?to=' + encodeURIComponent(T);"
    " document.body.append(i)",
    "web-transport": "if (window.WebTransport) new WebTransport(T.replace('http:', 'https:'))",
    "override": "fetch(T, {method: 'POST', headers: {'X-HTTP-Method-Override': 'DELETE'}, body: 'x'})",
    "graphql-mutation": "fetch(T, {method: 'POST', headers: {'Content-Type': 'application/json'},"
    """ body: JSON.stringify({query: 'mutation { remove(id: 1) }'})})""",
}

#: Scripts that change something by asking for an address, on a server that acts on GET.
ACTING_GETS = {
    "get-fetch": "fetch('/logout?get-fetch')",
    "get-xhr": "const r = new XMLHttpRequest(); r.open('GET', '/delete?id=get-xhr'); r.send()",
    "get-redirect": "fetch('/moved')",
    "get-events": "new EventSource('/logout?get-events')",
    "get-image": "new Image().src = '/delete?id=get-image'",
    "get-image-redirect": "new Image().src = '/moved?get-image-redirect'",
    "get-script": "const s = document.createElement('script'); s.src = '/logout?get-script'; document.head.append(s)",
    "get-style": "document.head.insertAdjacentHTML('beforeend', '<link rel=stylesheet href=/delete?id=get-style>')",
    "get-prefetch": "document.head.insertAdjacentHTML('beforeend', '<link rel=prefetch href=/delete?id=get-prefetch>')",
    "get-frame": "document.body.insertAdjacentHTML('beforeend', '<iframe src=/logout?get-frame></iframe>')",
    "get-worker": "new Worker(URL.createObjectURL(new Blob([`fetch('${location.origin}/logout?get-worker')`])))",
}

#: Senders that leave the page, or try to: they are used one at a time.
LEAVING = ("form", "form-request", "form-native", "unload-beacon", "unload-keepalive", "unload-xhr")

#: Senders that a browser for exploring keeps from trying: no tabs, no workers of several pages or of none, nothing later.
WITHOUT_EFFECT = {"fetch-later","form-native-tab", "popup-form", "popup-page", "popup-native", "shared-worker",
                  "shared-worker-socket", "prerender", "web-transport", "service-worker"}  # fmt: skip

#: Elements that a person could use, with their markup.
ELEMENTS = {
    "pinged link": "<a href='/left' ping='/change/pinged-link'>Pinged</a>",
    "submit": "<form method=post action='/change/submit'><button>Proceed</button></form>",
    "logout": "<a href='/logout'>Log out</a>",
    "remove": "<a href='/delete?id=1'>Delete</a>",
    "image": "<img src='/picture.svg' width=20 height=20 alt='Picture'>",
}

_READ = "new URLSearchParams(location.search).get('to')"
_POST = "fetch(T, {method: 'POST', body: 'x', mode: 'no-cors'})"
_HERE = "const T = location.hash.slice(1);"


def _reporting(request: Request) -> Page:
    """Return a page that violates its policy, and has that reported to the address in the query."""
    policy = f"script-src 'none'; report-uri {request.query.get('to', '')}"
    return Page("<h1>Reports</h1><script>1</script>", headers={"Content-Security-Policy": policy})


SHARED_PAGES: dict[str, Answer] = {
    "/reports": _reporting,
    "/blank": "<title>Blank</title><body>",
    "/left": "<h1>Left</h1>",
    "/posts-on-load": f"<h1>Posts</h1><script>{{ const T = {_READ}; {_POST} }}</script>",
    "/submits-on-load": f"<form id=f method=post></form><script>f.action = {_READ}; f.submit()</script>",
    "/worker-on-load": f"<script>new Worker('/worker.js#' + {_READ})</script>",
    "/frame-on-load": f"<iframe src='/posts-on-load'></iframe><script>document.querySelector('iframe').src ="
    f" '/posts-on-load?to=' + encodeURIComponent({_READ})</script>",
    "/unload": f"<script>addEventListener('pagehide', () => navigator.sendBeacon({_READ}, 'x'))</script>",
    "/worker.js": Page(f"{_HERE} {_POST}", content_type="text/javascript"),
    "/worker-xhr.js": Page(
        f"{_HERE} const r = new XMLHttpRequest(); r.open('POST', T); r.send('x')", content_type="text/javascript"
    ),
    "/worker-nested.js": Page(f"{_HERE} new Worker('/worker.js#' + T)", content_type="text/javascript"),
    "/worker-import.js": Page("importScripts('/worker.js')", content_type="text/javascript"),
    "/worker-socket.js": Page(
        "const s = new WebSocket(location.hash.slice(1)); s.onopen = () => s.send('x')",
        content_type="text/javascript",
    ),
    "/service-worker.js": Page("fetch('/change/service-worker', {method: 'POST'})", content_type="text/javascript"),
    "/picture.svg": Page("<svg xmlns='http://www.w3.org/2000/svg'/>", content_type="image/svg+xml"),
    "/moved": Page(redirect="/logout?get-redirect"),
    "/logout": "<h1>Logged out</h1>",
    "/delete": "<h1>Deleted</h1>",
}


class SocketSink:
    """A WebSocket server that keeps every message it gets, as (path, text)."""

    def __init__(self) -> None:
        self.messages: list[tuple[str, str]] = []
        self._server = serve(self._receive, "127.0.0.1", 0)
        self._thread = threading.Thread(target=self._server.serve_forever, name="socket-sink", daemon=True)

    @property
    def url(self) -> str:
        """`ws://127.0.0.1:port/`."""
        return f"ws://127.0.0.1:{self._server.socket.getsockname()[1]}/"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()

    def _receive(self, connection: ServerConnection) -> None:
        path = connection.request.path if connection.request else ""
        connection.send("welcome")
        try:
            for message in connection:
                self.messages.append((path, str(message)))
                connection.send(f"echo {message!s}")
        except ConnectionClosed:
            pass  # a page that goes away hangs up like this


class HostileSite:
    """The site, another origin that its frames come from, and a WebSocket server. A context manager.

    `/` has one button per sender, named like it; `/one/NAME` has that button alone.

    Parameters
    ----------
    other_host : host name under which frames of the other origin are loaded; `localhost` makes them another *site*,
        which browsers put into a process of their own.
    """

    def __init__(self, *, other_host: str = "localhost") -> None:
        self._stack = ExitStack()
        self._other_host = other_host
        self.site = FixtureServer({})
        self.other = FixtureServer(SHARED_PAGES)
        self.sink = SocketSink()
        self.socket_url = ""
        """Where pages find the WebSocket server, when not at its own address."""

    def __enter__(self) -> Self:
        for server in (self.site, self.other, self.sink):
            self._stack.enter_context(server)
        self.site.pages.update(SHARED_PAGES)
        self.site.pages["/"] = self.page(*SENDERS)
        self.site.pages.update({f"/one/{name}": self.page(name) for name in SENDERS})
        self.site.pages["/elements"] = f"<h1>Elements</h1>{''.join(ELEMENTS.values())}"
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    @property
    def url(self) -> str:
        """Where the site starts."""
        return self.site.url

    @property
    def changes(self) -> list[str]:
        """Everything that changed something at a server, by vector."""
        requests = [*self.site.requests, *self.other.requests]
        changed = [
            target.removeprefix("/change/")
            for method, target in requests
            if method not in {"GET", "HEAD", "OPTIONS"} or target.startswith(("/logout", "/delete"))
        ]
        return changed + [path.removeprefix("/change/") for path, _ in self.sink.messages]

    def page(self, *names: str) -> str:
        """A page with a button for each of these senders."""
        other = f"http://{self._other_host}:{self.other.url.rsplit(':', 1)[1]}"
        buttons = "".join(f"<p><button type=button onclick=\"run('{name}')\">{name}</button></p>" for name in names)
        senders = ",".join(f"'{name}': (T, S) => {{ {(SENDERS | ACTING_GETS)[name]} }}" for name in names)
        return f"""<!doctype html><title>Hostile</title><body><h1>{len(names)} ways to change something</h1>
        <script>const O = '{other}', SENDERS = {{{senders}}};
        const run = (name) => SENDERS[name](location.origin + '/change/' + name, '{self.socket_url or self.sink.url}change/' + name);</script>{buttons}"""
