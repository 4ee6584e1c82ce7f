"""Lists that grow when their end is shown: by scroll events of the window or a box, by what comes into view, without an end."""

from collections.abc import Callable

from tests.sites.answers import Area, edge, found, hidden, never, page, shows, states
from tests.sites.server import Page
from waygraph.demo_site.local_server import Request

#: `more()` adds four entries.
_ADD = """const total = %s;
let n = 0;
const more = () => {
  for (let i = 0; i < 4 && n < total; i++) {
    n += 1;
    feed.insertAdjacentHTML('beforeend', `<li style="height:220px"><a href="%s/${n}">Entry ${n} of %s</a>`);
  }
};
more();
"""
_AT_END = "const isAtEnd = () => scrollY + innerHeight > document.documentElement.scrollHeight - 200;\n"
_SCRIPTS = {
    # Scroll events of the window, as they come, and a quarter of a second later.
    "window": _AT_END + "addEventListener('scroll', () => { if (isAtEnd()) more(); });",
    "property": _AT_END + "onscroll = () => { if (isAtEnd()) more(); };",
    "throttled": _AT_END
    + """let waits = 0;
    document.addEventListener('scroll', () => {
      clearTimeout(waits); waits = setTimeout(() => { if (isAtEnd()) more(); }, 250);
    });""",
    "box": """box.addEventListener('scroll', () => { if (box.scrollTop + box.clientHeight > box.scrollHeight - 50) more(); });""",
    "sentinel": """new IntersectionObserver((entries) => { if (entries.some((e) => e.isIntersecting)) more(); }).observe(end);""",
    "sentinel-in-box": """new IntersectionObserver((entries) => { if (entries.some((e) => e.isIntersecting)) more(); },
      { root: box }).observe(end);""",
}


def _feed(name: str, total: str = "12") -> str:
    path = f"/grows/{name}"
    script = _ADD % (total, path, name) + _SCRIPTS[name.removeprefix("endless-")]
    box = "<div id=box style='height: 300px; overflow-y: auto'>" if "box" in name else "<div>"
    return page(f"<h1>{name}</h1>{box}<ol id=feed></ol><div id=end>.</div></div><script>{script}</script>")


def _entry(request: Request) -> Page:
    number = request.path.rsplit("/", 1)[1]
    return Page(found(f"grown-{request.path.split('/')[2]}-{number}"))


def _pages(name: str, count: int) -> dict[str, str | Callable[[Request], Page]]:
    return {f"/grows/{name}": _feed(name), **{f"/grows/{name}/{n}": _entry for n in range(1, count + 1)}}


#: Rows of a list of the window that keeps a screen of them in the document.
_VIRTUAL = page(
    """<div id=feed style="position: relative; height: 2800px"></div><script>
    const draw = () => {
      const first = Math.floor(scrollY / 200);
      feed.innerHTML = '';
      for (let i = first; i < Math.min(first + 6, 14); i++) {
        feed.insertAdjacentHTML('beforeend',
          `<a style="position: absolute; top: ${i * 200}px" href="/grows/virtual/${i + 1}">Entry ${i + 1} of virtual</a>`);
      }
    };
    addEventListener('scroll', draw); draw();</script>"""
)


_FAR_END = "<div style='height: 3000px'></div><p>The end"


def _notes_depth(request: Request) -> Page:
    """A page that has more for those who have scrolled, and stores a cookie when it is."""
    headers = {name.lower(): value for name, value in request.headers.items()}
    has_scrolled = "depth=1" in headers.get("cookie", "")
    more = found("grown-by-cookie") if has_scrolled else ""
    script = "addEventListener('scroll', () => { if (scrollY > 500) document.cookie = 'depth=1; path=/'; })"
    links = "".join(f"<a href=/grows/stores/{n}>Text {n} of stores</a> " for n in (1, 2, 3))
    return Page(page(f"<h1>{request.path}</h1>{links}{more}{_FAR_END}<script>{script}</script>"))


def _area(name: str) -> Area:
    entries = (shows(f"grown-{name}-{n}", by=f"Entry {n} of {name}") for n in (1, 4, 5, 8, 9, 12))
    return Area(f"grows-{name}", _pages(name, 12), (*entries, states(f"/grows/{name}", 1)))


AREAS = (
    *(_area(name) for name in ("window", "sentinel")),
    Area(
        "grows-virtual",
        {"/grows/virtual": _VIRTUAL, **{f"/grows/virtual/{n}": _entry for n in range(1, 15)}},
        (
            *(shows(f"grown-virtual-{n}", by=f"Entry {n} of virtual") for n in (1, 6, 7, 14)),
            states("/grows/virtual", 1),
        ),
    ),
    # What scrolling stores is gone when the next page is loaded.
    Area(
        "grows-stores",
        {"/grows/stores": _notes_depth, **{f"/grows/stores/{n}": _notes_depth for n in (1, 2, 3)}},
        (edge("Text 3 of stores"), hidden("grown-by-cookie")),
    ),
    # Scrolling leads to the next text: the page is captured as it was before.
    Area(
        "grows-away",
        {
            "/grows/away": page(
                f"""<f-away>found: grown-away</f-away>{_FAR_END}
                <script>addEventListener('scroll', () => {{ if (scrollY > 1500) location.href = '/grows/away/next'; }})
                </script>"""
            ),
            "/grows/away/next": found("grown-next-text"),
        },
        (shows("grown-away", by="Area grows-away"), states("/grows/away", 1)),
    ),
    # What appears at the end and stays in view is no row.
    Area(
        "grows-to-top",
        {
            "/grows/to-top": page(
                f"""<f-top>A long text</f-top>{_FAR_END}<button id=up onclick="scrollTo(0, 0); say('grown-back-to-top')"
                style="display: none; position: fixed; bottom: 9px">Back to top</button><script>
                addEventListener('scroll', () => {{ up.style.display = scrollY > 300 ? 'block' : 'none'; }})</script>"""
            )
        },
        (hidden("grown-back-to-top"), states("/grows/to-top", 1)),
    ),
    # Without an end: the entries of the page are followed, further ones are leads, and the number of batches is bounded.
    Area(
        "grows-endless",
        {
            "/grows/endless-window": _feed("endless-window", "Infinity"),
            **{f"/grows/endless-window/{n}": _entry for n in range(1, 999)},
        },
        (
            shows("grown-endless-window-4", by="Entry 4 of endless-window"),
            never("/grows/endless-window/5"),
            states("/grows/endless-window", 1),
        ),
    ),
)
#: Further ways in which scrolling adds entries; each takes a dozen actions.
MORE_AREAS = tuple(_area(name) for name in ("property", "throttled", "box", "sentinel-in-box"))
