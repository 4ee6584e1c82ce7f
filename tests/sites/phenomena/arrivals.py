"""Late content: slow responses and timers, loading on scroll, virtual lists."""

import time

from tests.sites.answers import Area, fetched, found, page, shows, states
from tests.sites.server import Page
from waygraph.demo_site.local_server import Request

DOT = b"\x89PNG\r\n\x1a\n"


def _late(request: Request) -> Page:
    """Respond after 0.8 s: only the server waits, nothing in the browser."""
    time.sleep(0.8)
    return Page('{"name": "late-xhr"}', content_type="application/json")


LATE = Area(
    "late-content",
    {
        "/late": page(
            """<button onclick="setTimeout(() => say('late-timer'), 800)">Timer of 800 ms</button>
            <button onclick="fetch('/late/answer').then(r => r.json()).then(r => say(r.name))">Request of 800 ms</button>
            <button onclick="setTimeout(() => fetch('/late/soon').then(() => setTimeout(() => say('late-chain'), 200)), 200)">Chain</button>"""
        ),
        "/late/answer": _late,
        "/late/soon": Page("{}", content_type="application/json"),
    },
    (
        shows("late-timer", by="Timer of 800 ms"),
        shows("late-xhr", by="Request of 800 ms"),
        shows("late-chain", by="Chain"),
        states("/late", 4),
    ),
)

LAZY_IMAGES = Area(
    "lazy-images",
    {
        "/lazy": page(
            """<div style="height:3000px">Scroll on</div><img loading=lazy src=/lazy/far.png width=40 height=40 alt=Far>
            <div style="height:2000px"></div><img data-src=/lazy/watched.png width=40 height=40 alt=Watched><script>
            new IntersectionObserver((entries, watcher) => entries.forEach(entry => {
              if (!entry.isIntersecting) return;
              entry.target.src = entry.target.dataset.src; watcher.disconnect(); say('came-into-view');
            })).observe(document.querySelector('[data-src]'));</script>"""
        ),
        "/lazy/far.png": Page(DOT, content_type="image/png"),
        "/lazy/watched.png": Page(DOT, content_type="image/png"),
    },
    (shows("came-into-view"), fetched("/lazy/far.png"), fetched("/lazy/watched.png"), states("/lazy", 1)),
)

INFINITE = Area(
    "infinite-scroll",
    {
        "/endless": page(
            """<ol id=feed></ol><div id=end>Loading more</div><script>
            let n = 0;
            const more = () => {
              for (let i = 0; i < 4; i++) {
                n += 1;
                feed.insertAdjacentHTML('beforeend', `<li style="height:220px"><a href="/endless/${n <= 8 ? n : 'more'}">Entry ${n}</a>`);
              }
            };
            more();
            new IntersectionObserver(entries => { if (entries.some(e => e.isIntersecting)) more(); }).observe(end);</script>"""
        ),
        **{f"/endless/{n}": found(f"entry-{n}") for n in range(1, 9)},
        "/endless/more": found("entry-more"),
    },
    # Scrolling through is bounded: the second batch is there, and it is still one state.
    (shows("entry-1", by="Entry 1"), shows("entry-8", by="Entry 8"), states("/endless", 1)),
)

VIRTUAL = Area(
    "virtual-list",
    {
        "/virtual": page(
            """<div id=view style="height:200px;overflow-y:auto;border:1px solid"><div id=rows style="position:relative;height:800px"></div></div><script>
            const draw = () => {
              const first = Math.floor(view.scrollTop / 40);
              rows.innerHTML = '';
              for (let i = first; i < Math.min(first + 5, 20); i++) {
                rows.insertAdjacentHTML('beforeend', `<a style="position:absolute;top:${i * 40}px" href="/virtual/${i}">Row ${i}</a>`);
              }
            };
            view.addEventListener('scroll', draw); draw();</script>"""
        ),
        **{f"/virtual/{n}": found(f"row-{n}") for n in range(20)},
    },
    # Rows that are not in the document yet can be clicked after scrolling the list.
    (
        *(shows(f"row-{n}", by=f"Row {n}") for n in (0, 4)),
        *(shows(f"row-{n}", by=f"Row {n}") for n in (5, 12, 19)),
    ),
)

LOAD_MORE = Area(
    "load-more",
    {
        "/load-more": page(
            """<ul id=list><li><a href=/load-more/1>Loaded 1</a></ul><button id=b>Show more</button><script>
            b.onclick = () => { list.insertAdjacentHTML('beforeend', '<li><a href=/load-more/2>Loaded 2</a>'); b.hidden = true; };
            </script>"""
        ),
        "/load-more/1": found("loaded-1"),
        "/load-more/2": found("loaded-2"),
    },
    (shows("loaded-1", by="Loaded 1"), shows("loaded-2", by="Loaded 2"), states("/load-more", 2)),
)

REFRESH = Area(
    "refresh",
    {
        "/refresh": "<!doctype html><title>Moved</title><meta http-equiv=refresh content='0; url=/refresh/to'><p>Wait",
        "/refresh/to": found("meta-refresh"),
    },
    (shows("meta-refresh", by="Area refresh"), states("/refresh", 0)),
)

#: Navigation that people could use, on pages that otherwise only show that they are not ready.
_NAVIGATION = "<nav><a href=/waits/home>Home</a></nav>"


def _slow(request: Request) -> Page:
    """Respond after 3.5 s, longer than a request may be open before it counts as a long poll."""
    time.sleep(3.5)
    return Page('{"name": "slow-answer"}', content_type="application/json")


WAITS = Area(
    "waits",
    {
        "/waits": page(
            """<a href=/waits/splash>Splash</a> <a href=/waits/bar>Bar</a> <a href=/waits/chain>Chained timers</a>
            <a href=/waits/countdown>Countdown</a> <a href=/waits/busy>Busy part</a> <a href=/waits/words>Words</a>
            <a href=/waits/spinner>Spinner</a> <a href=/waits/main>Empty main part</a>"""
        ),
        "/waits/home": found("waits-home"),
        # A logo over the whole page, and behind it navigation that nobody can reach yet.
        "/waits/splash": page(
            """<div id=splash style="position:fixed;inset:0;background:white"><svg width=40 height=40></svg></div>"""
            + _NAVIGATION
            + "<script>setTimeout(() => { splash.remove(); say('splash-over'); }, 1200)</script>"
        ),
        "/waits/bar": page(
            _NAVIGATION
            + """<progress id=bar max=100 value=0></progress><script>
            const tick = setInterval(() => {
              bar.value += 5;
              if (bar.value >= 100) { clearInterval(tick); bar.remove(); say('bar-full'); }
            }, 100)</script>"""
        ),
        "/waits/chain": page(
            _NAVIGATION
            + """<p id=state>Loading…</p><script>
            const step = (n) => setTimeout(() => (n ? step(n - 1) : (state.remove(), say('chain-over'))), 400);
            step(5)</script>"""
        ),
        "/waits/countdown": page(
            """<p>Starts in <b id=left>2</b></p><script>
            const clock = setInterval(() => {
              left.textContent -= 1;
              if (left.textContent === '0') { clearInterval(clock); say('countdown-over'); }
            }, 1000)</script>"""
        ),
        "/waits/busy": page(
            _NAVIGATION
            + """<main aria-busy=true><p>Your orders</p></main><script>
            fetch('/waits/answer').then((r) => r.json()).then((r) => {
              const main = document.querySelector('main'); main.removeAttribute('aria-busy'); say(r.name, main);
            })</script>"""
        ),
        "/waits/words": page(
            _NAVIGATION
            + "<p id=state>Bitte warten …</p><script>setTimeout(() => { state.remove(); say('words-over'); }, 1500)</script>"
        ),
        "/waits/spinner": page(
            _NAVIGATION
            + """<style>@keyframes turn { to { transform: rotate(1turn) } }
            #turning { width: 30px; height: 30px; border: 3px dotted; animation: turn 1s linear infinite }</style>
            <div id=turning></div><script>setTimeout(() => { turning.remove(); say('spinner-over'); }, 1500)</script>"""
        ),
        "/waits/main": page(
            _NAVIGATION
            + "<main></main><script>setTimeout(() => say('main-filled', document.querySelector('main')), 1500)</script>"
        ),
        "/waits/answer": _slow,
    },
    (
        shows("splash-over", by="Splash"),
        shows("bar-full", by="Bar"),
        shows("chain-over", by="Chained timers"),
        shows("countdown-over", by="Countdown"),
        shows("slow-answer", by="Busy part"),
        shows("words-over", by="Words"),
        shows("spinner-over", by="Spinner"),
        shows("main-filled", by="Empty main part"),
        *(
            states(f"/waits/{name}", 1)
            for name in ("splash", "bar", "chain", "countdown", "busy", "words", "spinner", "main")
        ),
    ),
)

AREAS = (WAITS, LATE, LAZY_IMAGES, INFINITE, VIRTUAL, LOAD_MORE, REFRESH)
