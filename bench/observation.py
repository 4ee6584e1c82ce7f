"""Size and time of an agent's observations: `python -m bench.observation [--only SITE ...] [--save]`.

On pages of the bundled shop, of sites from package registries (`bench.real_sites`) and on one page of more than 5,000
nodes, this measures

- the characters and tokens (o200k_base) of the simplified text and of the raw tree, beside Playwright's `aria_snapshot`
  in both of its modes and the HTML of the page,
- the time of an observation of a settled page, and of making its text from it,
- how many of the elements that Chromium's own accessibility tree offers for interaction have an id, by role and name.
  Those without one are mostly clipped or transparent (collapsed menus, links that skip to the content), or have another
  name; `examples` in the result lists some.

Tokens are counted with rs-bpe (`pip install rs-bpe`), which contains the vocabulary.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import tempfile
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from playwright.async_api import Page
from rs_bpe.bpe import openai

from bench.real_sites import NotAvailable, Served, gentelella, node_red, wagtail
from bench.result_files import RESULTS, processor, run_info, write_result
from bench.retrieval.maps import BROWSER, shop
from bench.retrieval.more_sites import fossil
from waygraph.agents.observation import PageObservation, agent_snapshot_options, observe
from waygraph.agents.observation.passes.text import clean
from waygraph.demo_site.local_server import LocalServer, Request, Response
from waygraph.pipeline.browser.page.view import PageView
from waygraph.pipeline.browser.process.launch import launch

REPEATS = 15
PAGES_PER_SITE = 5
#: Roles of Chromium's tree that an agent acts on. Options of native lists are chosen by their label, without an id.
INTERACTIVE = frozenset({
    "button", "link", "textbox", "searchbox", "combobox", "checkbox", "radio", "tab", "menuitem", "menuitemcheckbox",
    "menuitemradio", "switch", "slider", "spinbutton", "treeitem",
})  # fmt: skip
_WORDS = ("ledger", "harbour", "copper", "meadow", "lantern", "orchard", "violin", "granite", "falcon", "ember")


def large_page() -> str:
    """Return a page whose accessibility tree has more than 5,000 nodes: cards, a table, a form."""
    cards = "".join(
        f"<article><h3><a href=/item/{i}>{_WORDS[i % 10]} {i}</a></h3>"
        f"<p>{' '.join(_WORDS[(i + k) % 10] for k in range(6))}</p>"
        f"<ul><li>{i} left</li><li>From {_WORDS[i % 7]}</li></ul><button>Add {i}</button></article>"
        for i in range(300)
    )
    rows = "".join(
        f"<tr><td><a href=/order/{i}>NF-{i}</a></td><td>{_WORDS[i % 10]}</td><td>{i * 3} euros</td><td>paid</td></tr>"
        for i in range(200)
    )
    fields = "".join(f"<label>Field {i}<input name=f{i}></label>" for i in range(50))
    head = "<tr><th>Order</th><th>Item</th><th>Total</th><th>State</th></tr>"
    return f"<!doctype html><title>Large</title><main>{cards}<table>{head}{rows}</table><form>{fields}</form></main>"


@contextmanager
def large(_scratch: Path) -> Iterator[Served]:
    """Serve the large page."""

    def answer(request: Request) -> Response:
        return Response(large_page()) if request.path == "/" else Response("", status=404)

    with LocalServer(answer) as site:
        yield Served(site.url, Path())


SITES = {
    "large": large,
    "shop": shop,
    "gentelella": gentelella,
    "wagtail": wagtail,
    "fossil": fossil,
    "node-red": node_red,
}


async def timed(call: Callable[[], Awaitable[Any]]) -> tuple[dict[str, float], Any]:
    """Return the median and the shortest time of a call in milliseconds, and its last result."""
    took, result = [], None
    for _ in range(REPEATS):
        began = time.perf_counter()
        result = await call()
        took.append((time.perf_counter() - began) * 1000)
    return spread(took), result


def spread(took: list[float]) -> dict[str, float]:
    """Return median and minimum; the minimum is what other work on the machine disturbs least."""
    return {"p50": round(statistics.median(took), 1), "min": round(min(took), 1)}


def size(text: str, tokenizer: Any) -> dict[str, int]:
    """Return the characters and tokens of a text."""
    return {"chars": len(text), "tokens": len(tokenizer.encode(text))}


async def chromium_elements(page: Page) -> Counter[tuple[str, str]]:
    """Return role and name of what can be acted on in the main frame, by Chromium's own accessibility tree."""
    session = await page.context.new_cdp_session(page)
    nodes = (await session.send("Accessibility.getFullAXTree"))["nodes"]
    await session.detach()
    return Counter(
        (node["role"]["value"], clean(str(node.get("name", {}).get("value", ""))).casefold())
        for node in nodes
        if not node["ignored"] and node["role"]["value"] in INTERACTIVE
    )


def beside_chromium(observation: PageObservation, theirs: Counter[tuple[str, str]]) -> dict[str, Any]:
    """Compare the elements with an id with those of Chromium's tree: by role and name, and by role alone."""
    ours = Counter(
        (each.role, clean(each.name).casefold()) for each in observation.elements if not each.candidate.action.frame
    )
    missing = theirs - ours
    roles = Counter(role for role, _ in theirs.elements()) - Counter(role for role, _ in ours.elements())
    return {
        "chromium": theirs.total(),
        "with_id": (theirs & ours).total(),
        "role_missing": roles.total(),
        "examples": [f"{role} '{name[:40]}'" for role, name in list(missing)[:6]],
        "ours": len(observation.elements),
    }


async def measure(page: Page, view: PageView, tokenizer: Any) -> dict[str, Any]:
    """Measure one page that is loaded."""
    await observe(view)  # it settles, and gets the in-page script
    observe_ms, observation = await timed(lambda: observe(view))
    aria_ms, aria = await timed(lambda: page.locator("body").aria_snapshot())
    ai_ms, ai = await timed(lambda: page.locator("body").aria_snapshot(mode="ai"))
    took = []
    for _ in range(REPEATS):
        fresh = PageObservation.of(observation.snapshot)
        began = time.perf_counter()
        text = fresh.text
        took.append((time.perf_counter() - began) * 1000)
    assert sorted(observation.simplified.refs()) == sorted(each.ref for each in observation.elements)
    return {
        "path": urlsplit(page.url).path,
        "nodes": len(observation.snapshot.outline),
        "ids": len(observation.elements),
        "observe_ms": observe_ms,
        "in_page_ms": round(observation.snapshot.look_ms, 1),
        "text_ms": spread(took),
        "aria_ms": aria_ms,
        "aria_ai_ms": ai_ms,
        "text": size(text, tokenizer),
        "raw": size(observation.raw_text, tokenizer),
        "aria": size(aria, tokenizer),
        "aria_ai": size(ai, tokenizer),
        "html": size(await page.content(), tokenizer),
        "beside_chromium": beside_chromium(observation, await chromium_elements(page)),
    }


async def bench(served: Served, tokenizer: Any) -> list[dict[str, Any]]:
    """Measure the start page of a site and pages that it links to, spread over its links."""
    async with launch(BROWSER) as browser:
        context = await browser.new_context(viewport={"width": 1280, "height": 800}, storage_state=served.storage_state)
        page = await context.new_page()
        view = PageView(page, agent_snapshot_options(BROWSER), BROWSER, owned=False)
        await page.goto(served.start)
        start = await observe(view)
        host = urlsplit(served.start).netloc
        targets = dict.fromkeys(
            each.candidate.action.target.partition("#")[0]
            for each in start.elements
            if urlsplit(each.candidate.action.target).netloc == host and "logout" not in each.candidate.action.target
        )
        others = [url for url in targets if url and url != page.url.partition("#")[0]]
        step = max(1, len(others) // (PAGES_PER_SITE - 1))
        results = [await measure(page, view, tokenizer)]
        for url in others[::step][: PAGES_PER_SITE - 1]:
            response = await page.goto(url)
            if response is not None and response.ok:
                results.append(await measure(page, view, tokenizer))
        return results


def row(name: str, r: dict[str, Any]) -> str:
    """Return a line of the table."""
    seen = r["beside_chromium"]
    sizes = (f"{r[key]['chars']} / {r[key]['tokens']}" for key in ("text", "raw", "aria", "aria_ai"))
    times = (
        *(f"{r['observe_ms'][kind]} + {r['text_ms'][kind]}" for kind in ("p50", "min")),
        *(f"{r['aria_ms'][kind]}, {r['aria_ai_ms'][kind]}" for kind in ("p50", "min")),
    )
    found = f"{seen['with_id']} of {seen['chromium']}"
    cells = (f"{name} `{r['path'][:34]}`", r["nodes"], r["ids"], *sizes, r["html"]["tokens"], *times, found)
    return "| " + " | ".join(map(str, cells)) + " |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="*", choices=sorted(SITES), default=sorted(SITES))
    parser.add_argument("--scratch", type=Path, default=Path(tempfile.gettempdir()) / "waygraph-sites")
    parser.add_argument("--save", action="store_true", help="write bench/results/observation.json")
    options = parser.parse_args()
    options.scratch.mkdir(parents=True, exist_ok=True)
    tokenizer = openai.o200k_base()
    about = run_info() | processor()
    results: dict[str, list[dict[str, Any]]] = {}
    columns = (
        *("page", "nodes", "ids", "text: chars / tokens", "raw", "aria", "aria (ai)", "HTML tokens"),
        *("observe + text: median ms", "min", "aria, aria (ai): median ms", "min", "Chromium's elements with id"),
    )
    print(f"| {' | '.join(columns)} |")
    print(f"| {' | '.join('---' for _ in columns)} |")
    for name in [each for each in SITES if each in options.only]:
        try:
            with SITES[name](options.scratch) as served:
                results[name] = asyncio.run(bench(served, tokenizer))
        except NotAvailable as error:
            print(f"{name} could not be installed: {error}", flush=True)
            continue
        for each in results[name]:
            print(row(name, each), flush=True)
    if options.save:
        write_result(
            RESULTS / "observation.json", about | {"repeats": REPEATS, "tokenizer": "o200k_base", "sites": results}
        )


if __name__ == "__main__":
    main()
