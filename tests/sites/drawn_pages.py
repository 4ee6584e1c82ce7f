"""An application on a static host, which answers every address that is no file with the application and the status 404.

The application draws the page of the address. Some of its links load documents, some are handled by `pushState`. Its
own page for unknown addresses, and the error page of another part of the host, are no pages of the site.
"""

from __future__ import annotations

from tests.sites.server import Answer, Page

#: Title by path, of pages that are drawn.
DRAWN = {"/about": "About us", "/team": "Our team", "/team/ann": "Ann of the team", "/prices": "Prices"}

_APP = """<!doctype html><title>App</title><nav></nav><main></main><script>
  const pages = { "/": "Start", "/about": "About us", "/team": "Our team", "/team/ann": "Ann of the team", "/prices": "Prices" };
  const bar = ["/", "/about", "/team", "/missing", "/lost", "/old/page"];
  document.querySelector("nav").innerHTML = bar.map(path => `<a href="${path}">${pages[path] ?? path.slice(1)}</a> `).join("");
  const draw = () => {
    const name = pages[location.pathname];
    document.title = name ?? "App";
    const more = { "/about": '<a href="/prices" data-push>Prices</a>', "/team": '<a href="/team/ann">Ann</a>' };
    document.querySelector("main").innerHTML = name
      ? `<h1>${name}</h1><p>All about ${name.toLowerCase()}.</p>${more[location.pathname] ?? ""}`
      : "<h1>There is nothing here</h1>";
  };
  addEventListener("click", event => {
    if (!event.target.matches("[data-push]")) return;
    event.preventDefault();
    history.pushState(null, "", event.target.getAttribute("href"));
    draw();
  });
  addEventListener("popstate", draw);
  draw();
</script>"""
_ERROR = (
    "<!doctype html><title>old page</title><a href=/>Start</a> <a href=/about>About</a><h1>404: old page not found</h1>"
)


def pages() -> dict[str, Answer]:
    """Return the pages by path."""
    return {
        "/": _APP,
        "/old/page": Page(_ERROR, status=404),
        "/robots.txt": Page(status=404),
        "*": Page(_APP, status=404),
    }
