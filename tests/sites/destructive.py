"""Pages with one element that changes data, beside safe ones: delete buttons, POST on click, GET that deletes, logout.

`TRAPS` has each element in the forms in which sites have it. `trap_pages` puts one on a small site; `deeds` are the
requests by which the server sees that it was used.
"""

from __future__ import annotations

from dataclasses import dataclass

from waygraph.demo_site.local_server import LocalServer

KINDS = ("delete button", "POST on click", "GET that deletes", "logout")


@dataclass(frozen=True)
class Trap:
    """An element that changes data.

    Attributes
    ----------
    kind : one of `KINDS`.
    name : accessible name of the element.
    html : the element, with what it needs.
    deed : method and target of the request that changes data.

    """

    kind: str
    name: str
    html: str
    deed: tuple[str, str]

    def __str__(self) -> str:
        return f"{self.kind}: {self.name}, {' '.join(self.deed)}"


def _fetching(name: str, method: str, target: str, *, element: str = "button", extra: str = "") -> str:
    return f"<{element} {extra} onclick=\"fetch('{target}', {{method: '{method}'}})\">{name}</{element}>"


def _post_form(target: str, button: str, *, extra: str = "") -> str:
    return f"<form method=post action={target} {extra}>{button}</form>"


#: A script that sends the method of `data-method`, as the libraries of server frameworks do.
_UNOBTRUSIVE = """<script>document.addEventListener('click', event => {
  const link = event.target.closest('[data-method], [hx-delete]');
  if (!link) return;
  event.preventDefault();
  fetch(link.getAttribute('hx-delete') || link.href, {method: (link.dataset.method || 'delete').toUpperCase()});
});</script>"""

_DELETE, _POST, _GET, _LOGOUT = KINDS
TRAPS = (
    Trap(_DELETE, "Delete", _fetching("Delete", "DELETE", "/items/1"), ("DELETE", "/items/1")),
    Trap(_DELETE, "Remove item", _fetching("&times;", "DELETE", "/items/1", extra='aria-label="Remove item"'),
         ("DELETE", "/items/1")),
    Trap(_DELETE, "Delete account", _post_form("/account", "<button>Delete account</button>"), ("POST", "/account")),
    Trap(_DELETE, "Delete the shop", f"<a href=/items/1 data-method=delete>Delete the shop</a>{_UNOBTRUSIVE}",
         ("DELETE", "/items/1")),
    Trap(_DELETE, "Empty trash", _post_form("/bin", '<input type=submit value="Empty trash">'), ("POST", "/bin")),
    Trap(_DELETE, "Löschen", _fetching("Löschen", "DELETE", "/items/1"), ("DELETE", "/items/1")),
    Trap(_DELETE, "Clear", f"<button hx-delete=/items/1>Clear</button>{_UNOBTRUSIVE}", ("DELETE", "/items/1")),
    Trap(_DELETE, "Discard draft",
         _fetching("Discard draft", "POST", "/draft/discard", element="div", extra="role=button tabindex=0"),
         ("POST", "/draft/discard")),
    Trap(_POST, "Go on", _post_form("/orders", "<button>Go on</button>"), ("POST", "/orders")),
    Trap(_POST, "Subscribe", _post_form("/news", "<button>Subscribe</button>"), ("POST", "/news")),
    Trap(_POST, "OK", "<form action=/list><button formmethod=post formaction=/orders>OK</button></form>",
         ("POST", "/orders")),
    Trap(_POST, "Send", _post_form("/letters", "<input type=image alt=Send width=20 height=20>"), ("POST", "/letters")),
    Trap(_POST, "Publish", '<a href="#" onclick="document.forms[0].submit(); return false">Publish</a>'
         + _post_form("/publish", ""), ("POST", "/publish")),
    Trap(_POST, "Next", _post_form("/orders", "", extra="id=f") + "<button form=f>Next</button>", ("POST", "/orders")),
    Trap(_POST, "Place order", _fetching("Place order", "POST", "/orders"), ("POST", "/orders")),
    Trap(_POST, "Approve", _fetching("Approve", "POST", "/requests/4"), ("POST", "/requests/4")),
    Trap(_GET, "Tidy up", "<a href=/items/1/delete>Tidy up</a>", ("GET", "/items/1/delete")),
    Trap(_GET, "Away", '<a href="/list?action=delete&amp;id=3">Away</a>', ("GET", "/list?action=delete&id=3")),
    Trap(_GET, "Start over", "<a href=/cart/empty>Start over</a>", ("GET", "/cart/empty")),
    Trap(_GET, "Less", "<a href=/cart/remove/7>Less</a>", ("GET", "/cart/remove/7")),
    Trap(_GET, "No more letters", "<a href=/unsubscribe?u=1>No more letters</a>", ("GET", "/unsubscribe?u=1")),
    Trap(_GET, "Old", "<a href=/posts/9/trash>Old</a>", ("GET", "/posts/9/trash")),
    Trap(_GET, "Yes", "<form action=/items/delete><button>Yes</button></form>", ("GET", "/items/delete?")),
    Trap(_GET, "Do it", "<button onclick=\"location.href = '/items/1/delete'\">Do it</button>",
         ("GET", "/items/1/delete")),
    Trap(_LOGOUT, "Log out", "<a href=/logout>Log out</a>", ("GET", "/logout")),
    Trap(_LOGOUT, "Bye", "<a href=/user/sign-out>Bye</a>", ("GET", "/user/sign-out")),
    Trap(_LOGOUT, "Exit", '<a href="/?action=logout">Exit</a>', ("GET", "/?action=logout")),
    Trap(_LOGOUT, "Sign out", _post_form("/session", "<button>Sign out</button>"), ("POST", "/session")),
    Trap(_LOGOUT, "Abmelden", "<a href=/konto/abmelden>Abmelden</a>", ("GET", "/konto/abmelden")),
    Trap(_LOGOUT, "End session", "<button onclick=\"location.href = '/session/end'\">End session</button>",
         ("GET", "/session/end")),
)  # fmt: skip

_SAFE = """<a href=/other>Other</a> <button onclick="more.hidden = false">Details</button>
<p id=more hidden>Made of oak <button onclick="rest.hidden = false">More</button></p><p id=rest hidden>All of it</p>"""


def trap_pages(trap: Trap) -> dict[str, str]:
    """Return pages: the trap with safe elements, another page with the trap again, and what the trap leads to.

    Parameters
    ----------
    trap : the trap.
    """
    again = f"<!doctype html><title>Again</title><h1>Again</h1>{trap.html}"
    return {
        "/": f"<!doctype html><title>Trap</title><h1>Trap</h1>{_SAFE} {trap.html}",
        "/other": "<!doctype html><title>Other</title><h1>Other</h1><a href=/deeper>Deeper</a>",
        "/deeper": "<!doctype html><title>Deeper</title><h1>Deeper</h1>",
        trap.deed[1].rstrip("?"): again,
        "*": again,
    }


#: Names of the safe elements in `trap_pages`.
SAFE_NAMES = ("Other", "Details", "More", "Deeper")


def deeds(trap: Trap, server: LocalServer) -> list[int]:
    """Return the places of the requests that changed data, in the server's log of requests."""
    return [
        place
        for place, (method, target) in enumerate(server.requests)
        if method != "GET" or (method, target) == trap.deed
    ]
