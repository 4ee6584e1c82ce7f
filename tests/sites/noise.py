"""Pages with noise: differences between loads, or between two snapshots, that must not make new states.

Every page has the same ordinary parts: a menu that opens, a second tab, links. They are its only states.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count

from tests.sites.server import Answer
from tests.sites.truth import Shown, TrueGraph
from waygraph.demo_site.local_server import Request

#: What is linked from every page, by the name of the link.
LINKS = {"Home": "/", "About us": "/about"}


@dataclass(frozen=True)
class Noise:
    """One kind of noise: makes the parts of a page from the number of the load.

    Attributes
    ----------
    top, inside, bottom : HTML before the ordinary parts, between them, and after them.
    link : what is added to the address of each link.
    swap : the two blocks of the page change places on every other load.
    """

    name: str
    top: Callable[[int], str] = lambda _: ""
    inside: Callable[[int], str] = lambda _: ""
    bottom: Callable[[int], str] = lambda _: ""
    link: Callable[[int], str] = lambda _: ""
    swap: bool = False


def random_hex(load: int, length: int = 32) -> str:
    """What a server would draw at random, but the same in every run."""
    return hashlib.sha256(f"noise {load}".encode()).hexdigest()[:length]


def _advertisement(load: int) -> str:
    """None, one or two advertisements of different make."""
    texts = ("Fly to Rome", "Cheap insurance", "Eat more fruit", "Phones for all", "Rent a boat")
    makes = (
        "<div class=ad><p>{0}</p></div>",
        "<div class=ad><section><h4>{0}</h4><p>Sponsored</p><a href='https://ads.example/{1}'>{0} now</a></section></div>",
    )
    return "".join(makes[(load + i) % 2].format(texts[(load * 2 + i) % 5], load) for i in range(load % 3))


def _slides(period_ms: int) -> Callable[[int], str]:
    def html(_: int) -> str:
        slides = "".join(f"<div class=slide {'hidden' if i else ''}>{'<p>Slide</p>' * (i + 1)}</div>" for i in range(3))
        return f"""<div id=slides>{slides}</div><script>
          let at = 0;
          setInterval(() => {{
            const all = document.querySelectorAll('.slide');
            all[at].hidden = true; at = (at + 1) % all.length; all[at].hidden = false;
          }}, {period_ms});
        </script>"""

    return html


CLOCK = """<p id=clock>00:00:00</p><script>
  const tick = () => { document.querySelector('#clock').textContent = new Date().toISOString().slice(11, 19); };
  tick(); setInterval(tick, 1000);
</script>"""

GROWING_CLOCK = """<p id=clock></p><script>
  // One bar per second of the time of day: the number of elements tells the time.
  const bars = () => { document.querySelector('#clock').innerHTML = '<i>|</i>'.repeat(1 + Date.now() / 250 % 8); };
  bars(); setInterval(bars, 250);
</script>"""

KINDS = (
    Noise("timestamp", top=lambda load: f"<p>Generated on 2024-05-{1 + load % 28:02} at 12:{load % 60:02}:07</p>"),
    Noise("clock", top=lambda _: CLOCK),
    Noise("bars", bottom=lambda _: GROWING_CLOCK),
    Noise("ads", top=_advertisement, inside=lambda load: _advertisement(load + 1)),
    Noise(
        "csrf",
        top=lambda load: f"<form method=post><input type=hidden name=csrf value={random_hex(load)}></form>",
        link=lambda load: f"?token={random_hex(load)}",
    ),
    Noise("session", link=lambda load: f"?zx={random_hex(load, 16)}"),
    Noise("carousel", bottom=_slides(2_000)),
    Noise("fast_carousel", bottom=_slides(600)),
    Noise("blocks", swap=True),
    Noise("visitors", bottom=lambda load: f"<p>You are visitor number {1000 + 7 * load}</p>"),
    Noise("stars", bottom=lambda load: f"<p>{'<i>*</i>' * (1 + load * 7 % 5)} people are looking at this</p>"),
)


def _page(kind: Noise, load: int) -> str:
    links = "".join(f"<a href='{path}{kind.link(load)}'>{name}</a> " for name, path in LINKS.items())
    menu = f"""<div id=first><button onclick="this.nextElementSibling.toggleAttribute('hidden')">Menu</button>
      <ul hidden><li>The menu is open</li><li><a href='/contact{kind.link(load)}'>Contact of {kind.name}</a></li></ul></div>"""
    tabs = f"""<div id=second><p>Everything about {kind.name}</p>
      <button role=tab onclick="one.hidden = true; two.hidden = false">Second tab</button>
      <div id=one><p>First panel</p></div><div id=two hidden><h3>Second panel</h3><p>More of it</p><p>And more</p></div></div>"""
    blocks = [menu, tabs]
    if kind.swap and load % 2:
        blocks.reverse()
    return (
        f"<!doctype html><html lang=en><title>{kind.name}</title><body>{kind.top(load)}<nav>{links}</nav>"
        f"<h1>Page of {kind.name}</h1>{blocks[0]}{kind.inside(load)}{blocks[1]}{kind.bottom(load)}</body>"
    )


def noise_pages(kinds: tuple[Noise, ...] = KINDS) -> dict[str, Answer]:
    """The site: a start page that links to one page per kind of noise. Every load of a page differs from the last."""

    def answer(kind: Noise, loads: Iterator[int]) -> Callable[[Request], str]:
        return lambda _: _page(kind, next(loads))

    links = "".join(f"<li><a href='/{kind.name}'>Noise {kind.name}</a></li>" for kind in kinds)
    pages: dict[str, Answer] = {
        "/": f"<!doctype html><html lang=en><title>Home</title><h1>Start</h1><ul>{links}</ul>",
        "/about": "<!doctype html><html lang=en><title>About</title><h1>About the firm</h1><p>Founded once.</p>",
        "/contact": "<!doctype html><html lang=en><title>Contact</title><h1>Contact form</h1><h2>Write</h2><p>To us.</p>",
    }
    return pages | {f"/{kind.name}": answer(kind, count()) for kind in kinds}


def noise_truth(kinds: tuple[Noise, ...] = KINDS) -> TrueGraph:
    """What there is to find, to a depth of 3."""
    anything = r"(\?.*)?"
    states = {
        "home": Shown(f"/{anything}", ("Start",)),
        "about": Shown(f"/about{anything}", ("About the firm",)),
        "contact": Shown(f"/contact{anything}", ("Contact form",)),
    }
    edges: set[tuple[str, str, str]] = set()
    for kind in kinds:
        name, heading = kind.name, f"Page of {kind.name}"
        states[name] = Shown(f"/{name}{anything}", (heading, "First panel"), ("The menu is open", "Second panel"))
        states[f"{name} menu"] = Shown(f"/{name}{anything}", (heading, "The menu is open"), ("Second panel",))
        states[f"{name} tab"] = Shown(f"/{name}{anything}", (heading, "Second panel"), ("The menu is open",))
        edges |= {
            ("home", f"Noise {name}", name),
            (name, "Menu", f"{name} menu"),
            (name, "Second tab", f"{name} tab"),
            (name, "Home", "home"),
            (name, "About us", "about"),
            (f"{name} menu", f"Contact of {name}", "contact"),
        }
    return TrueGraph(states, frozenset(edges))
