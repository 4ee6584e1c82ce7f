"""A content management system whose editors depend on earlier visits.

Each editor has a title, a field, a toolbar with a menu, and a link back; and by what was done before:

- `/welcome`: a dialog covers the page until it is closed; a cookie remembers that.
- `/locked`: a notice says that somebody else is editing, if another session opened the page within the last minute.
- `/autosaved`: a notice says that a newer draft exists, from the second load of the page on: each load sends one.
- `/tour`: a hint is shown once; the browser's storage remembers it as soon as it was shown.
"""

from __future__ import annotations

import secrets
import threading
import time
from http.cookies import SimpleCookie

from tests.sites.server import Answer, Page
from waygraph.demo_site.local_server import Request

NAMES = ("welcome", "locked", "autosaved", "tour")
#: Seconds for which a session that opened `/locked` counts as editing.
LOCK_S = 60.0
_HINT = """<aside><p>Hint: write the title first.</p>
  <button onclick="this.parentNode.remove()">Skip the tour</button></aside>"""

_TOUR = f"""<div id=tour></div><script>
  if (!localStorage.getItem('toured')) tour.innerHTML = `{_HINT}`;
  localStorage.setItem('toured', 'yes');
</script>"""
_WELCOME = """<div role=dialog aria-modal=true aria-label=Welcome style="position: fixed; inset: 0; background: white">
  <h2>Welcome to the editor</h2><p>Everything is a block here.</p>
  <button onclick="document.cookie = 'welcomed=1; path=/; max-age=99999'; this.parentNode.remove()">Got it</button></div>"""
_LOCKED = "<p>Ada is editing this post. <button>Take over</button></p>"
_NEWER = "<p>A draft of this post is newer than the version below. <a href=/autosaved?restore>View the draft</a></p>"


class VisitHistory:
    """What the server remembers: the pages of a `FixtureServer` in `pages`.

    Attributes
    ----------
    pages : answers by path.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._editors: dict[str, float] = {}
        self._drafts = False
        links = "".join(f"<li><a href=/{name}>{name.capitalize()} post</a></li>" for name in NAMES)
        self.pages: dict[str, Answer] = {
            "/": f"<!doctype html><title>Posts</title><h1>Posts</h1><p>Choose a post.</p><ul>{links}</ul>",
            "/welcome": self._welcome,
            "/locked": self._locked,
            "/autosaved": self._autosaved,
            "/draft": self._draft,
            "/tour": _editor("tour", before=_TOUR),
        }
        for name in NAMES:
            self.pages[f"/{name}/settings"] = f"<!doctype html><title>Settings</title><h1>Settings of {name}</h1>"

    def _welcome(self, request: Request) -> str:
        return _editor("welcome", before="" if "welcomed" in _cookies(request) else _WELCOME)

    def _locked(self, request: Request) -> Page:
        session = _cookies(request).get("session") or secrets.token_hex(8)
        with self._lock:
            now = time.monotonic()
            others = any(now - at < LOCK_S for other, at in self._editors.items() if other != session)
            self._editors[session] = now
        body = _editor("locked", before=_LOCKED if others else "")
        return Page(body, headers={"Set-Cookie": f"session={session}; Path=/; HttpOnly"})

    def _draft(self, _: Request) -> str:
        self._drafts = True
        return "{}"

    def _autosaved(self, _: Request) -> str:
        script = "fetch('/draft', { method: 'POST', body: '{}' })"
        return _editor("autosaved", before=_NEWER if self._drafts else "", script=script)


def _editor(name: str, *, before: str = "", script: str = "") -> str:
    return f"""<!doctype html><title>Edit {name} post</title>
    <h1>Edit the {name} post</h1>{before}
    <label>Title <input value="A {name} post"></label>
    <button onclick="this.nextElementSibling.toggleAttribute('hidden')">Options of the {name} post</button>
    <ul hidden><li>Visibility of the {name} post</li><li><a href=/{name}/settings>Settings of the {name} post</a></li></ul>
    <p>Words of the {name} post.</p><p>It has a second paragraph.</p><a href=/>All posts</a><script>{script}</script>"""


def _cookies(request: Request) -> dict[str, str]:
    sent = next((value for name, value in request.headers.items() if name.lower() == "cookie"), "")
    return {name: morsel.value for name, morsel in SimpleCookie(sent).items()}
