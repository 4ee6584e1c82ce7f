"""Size and time of an agent's observations: `python -m bench.observation [--only SITE ...] [--save]`.

On pages of the sites of `bench.tasks` and on one page of more than 5,000 nodes, this measures

- the characters and tokens (o200k_base) of the text that agents get when they first see the page (`text`) and when they
  come from the page before (`step`: what did not change is folded), of all of it (`full`) and of the raw tree, beside
  BrowserGym's `axtree_txt`, Playwright's `aria_snapshot` in both of its modes and the HTML of the page,
- the ratios of `text` and `step` to `axtree_txt`, as medians by site and by split,
- the time of an observation of a settled page, and of making its text from it,
- how many of the texts and of the elements for interaction in Chromium's own accessibility tree are not in the full
  text, by the reason why the page does not show them, see `bench.beside_chromium`.

Pages of a site are those that its start page links to, or what clicks show where there are no links.

Tokens are counted with rs-bpe (`pip install rs-bpe`), which contains the vocabulary.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from playwright.async_api import Page

from bench import real_sites
from bench.axtree_txt import axtree_txt, browsergym_version
from bench.beside_chromium import beside_chromium, missing_of
from bench.real_sites import NotAvailable, Served
from bench.result_files import RESULTS, processor, run_info, with_sites_before, write_result
from bench.retrieval.maps import BROWSER, shop
from bench.tasks.site_tasks import SPLITS
from waygraph.agents.actions import AgentSession, ClickAction, SessionOptions
from waygraph.agents.observation import PageObservation, agent_snapshot_options, observe
from waygraph.agents.observation.render import render
from waygraph.demo_site.local_server import LocalServer, Request, Response
from waygraph.pipeline.browser.page.view import PageView
from waygraph.pipeline.browser.process.launch import launch

REPEATS = 15
PAGES_PER_SITE = 5
TRIES = 5
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


SITES: dict[str, Callable[[Path], AbstractContextManager[Served]]] = {
    "large": large,
    "demo_shop": shop,
    **{name: getattr(real_sites, name) for split in SPLITS.values() for name in split if name != "demo_shop"},
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


async def texts_of(page: Page) -> dict[str, str]:
    """Return what others make of a page."""
    return {
        "axtree_txt": await axtree_txt(page),
        "aria": await page.locator("body").aria_snapshot(),
        "aria_ai": await page.locator("body").aria_snapshot(mode="ai"),
        "html": await page.content(),
    }


async def measure(page: Page, view: PageView, before: PageObservation | None, tokenizer: Any) -> dict[str, Any]:
    """Measure one page that is loaded and was reached from another one."""
    await observe(view)  # it settles, and gets the in-page script
    observe_ms, observation = await timed(lambda: observe(view, form="abridged"))
    aria_ms, _ = await timed(lambda: page.locator("body").aria_snapshot())
    ai_ms, _ = await timed(lambda: page.locator("body").aria_snapshot(mode="ai"))
    for _ in range(TRIES):  # an application may have drawn more since, which is not compared with what was before
        observation, texts = await observe(view, form="abridged"), await texts_of(page)
        beside = await beside_chromium(page, observation)
        if (await observe(view)).raw_text == observation.raw_text:
            break
    took = []
    for _ in range(REPEATS):
        fresh = PageObservation.of(observation.snapshot, form="abridged", before=before)
        began = time.perf_counter()
        step = fresh.text
        took.append((time.perf_counter() - began) * 1000)
    assert sorted(observation.simplified.refs()) == sorted(each.ref for each in observation.elements)
    sizes = {
        "text": observation.text, "step": step, "full": render(observation.simplified), "raw": observation.raw_text,
        **texts,
    }  # fmt: skip
    return {
        "path": urlsplit(page.url).path,
        "nodes": len(observation.snapshot.outline),
        "ids": len(observation.elements),
        "observe_ms": observe_ms,
        "in_page_ms": round(observation.snapshot.look_ms, 1),
        "text_ms": spread(took),
        "aria_ms": aria_ms,
        "aria_ai_ms": ai_ms,
        **{name: size(text, tokenizer) for name, text in sizes.items()},
        "beside_chromium": beside,
        "texts": sizes,
    }


async def bench(served: Served, tokenizer: Any) -> list[dict[str, Any]]:
    """Measure the start page of a site and pages that it links to, spread over its links, one after the other."""
    async with launch(BROWSER) as browser:
        context = await browser.new_context(viewport={"width": 1280, "height": 800}, storage_state=served.storage_state)
        page = await context.new_page()
        view = PageView(page, agent_snapshot_options(BROWSER), BROWSER, owned=False)
        await page.goto(served.start)
        before = await observe(view)
        host = urlsplit(served.start).netloc
        targets = dict.fromkeys(
            each.candidate.action.target.partition("#")[0]
            for each in before.elements
            if urlsplit(each.candidate.action.target).netloc == host and "logout" not in each.candidate.action.target
        )
        others = [url for url in targets if url and url != page.url.partition("#")[0]]
        step = max(1, len(others) // (PAGES_PER_SITE - 1))
        results = [await measure(page, view, None, tokenizer)]
        for url in others[::step][: PAGES_PER_SITE - 1]:
            response = await page.goto(url)
            if response is not None and response.ok and "html" in response.headers.get("content-type", ""):
                results.append(await measure(page, view, before, tokenizer))
                before = await observe(view)
        if len(results) == 1:
            results += await bench_clicks(page, view, tokenizer)
        return results


async def bench_clicks(page: Page, view: PageView, tokenizer: Any) -> list[dict[str, Any]]:
    """Measure what clicks show on a page without links: one for each role, as far as they change something."""
    results: list[dict[str, Any]] = []
    async with AgentSession(page, SessionOptions(browser=BROWSER)) as session:
        for role in ("tab", "menuitem", "button", "treeitem", "generic", "listitem"):
            before = await session.observe()
            names = [each for each in before.elements if each.role == role and not each.list_ref]
            if len(results) == PAGES_PER_SITE - 1 or not names:
                continue
            report = await session.act(ClickAction(element=names[len(names) // 2].ref))
            if report.has("changed") or report.has("navigated"):
                results.append(await measure(page, view, before, tokenizer))
    return results


def ratios(pages: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """Return the medians of the tokens of both texts over those of `axtree_txt`; `step` of all pages but the first."""
    found = {}
    for name, some in (("text", pages), ("step", pages[1:])):
        if some:
            found[name] = round(
                statistics.median(each[name]["tokens"] / each["axtree_txt"]["tokens"] for each in some), 2
            )
    return found


def medians_of(results: Mapping[str, Sequence[Mapping[str, Any]]]) -> dict[str, dict[str, float]]:
    """Return the ratios of each site, and the medians over the sites of each split."""
    medians = {name: ratios(pages) for name, pages in results.items()}
    for split, names in SPLITS.items():
        found = [medians[name] for name in names if name in medians]
        for kind in ("text", "step"):
            values = [each[kind] for each in found if kind in each]
            if values:
                medians.setdefault(split, {})[kind] = round(statistics.median(values), 2)
    return medians


def write_texts(folder: Path | None, name: str, texts: Mapping[str, str]) -> None:
    """Write the texts of a page into a folder; None: nowhere."""
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
        for kind, text in texts.items():
            (folder / f"{name}-{kind}.txt").write_text(text)


def missing_row(missing: Mapping[str, Mapping[str, Any]], total: int) -> str:
    """Return what is missing of a page as a cell of the table."""
    counts = [f"{kind} {each['count']}" for kind, each in missing.items()]
    return f"{sum(each['count'] for each in missing.values())} of {total}" + (
        f": {', '.join(counts)}" if counts else ""
    )


def row(name: str, r: dict[str, Any]) -> str:
    """Return a line of the table."""
    seen = r["beside_chromium"]
    sizes = (r[key]["tokens"] for key in ("text", "step", "full", "axtree_txt", "raw", "aria", "aria_ai", "html"))
    times = (
        *(f"{r['observe_ms'][kind]} + {r['text_ms'][kind]}" for kind in ("p50", "min")),
        *(f"{r['aria_ms'][kind]}, {r['aria_ai_ms'][kind]}" for kind in ("p50", "min")),
    )
    missing = (
        missing_row(seen["elements_missing"], seen["chromium"]),
        missing_row(seen["texts_missing"], seen["texts"]),
    )
    cells = (f"{name} `{r['path'][:34]}`", r["nodes"], r["ids"], *sizes, *times, *missing)
    return "| " + " | ".join(map(str, cells)) + " |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="*", choices=sorted(SITES), default=sorted(SITES))
    parser.add_argument("--scratch", type=Path, default=Path(tempfile.gettempdir()) / "waygraph-sites")
    parser.add_argument("--texts", type=Path, help="write the texts into this folder")
    parser.add_argument("--save", action="store_true", help="write bench/results/observation.json")
    options = parser.parse_args()
    options.scratch.mkdir(parents=True, exist_ok=True)
    tokenizer = importlib.import_module("rs_bpe.bpe").openai.o200k_base()
    about = run_info() | processor()
    results: dict[str, list[dict[str, Any]]] = {}
    columns = (
        *("page", "nodes", "ids", "tokens: text", "step", "full", "axtree_txt", "raw", "aria", "aria (ai)", "HTML"),
        *("observe + text: median ms", "min", "aria, aria (ai): median ms", "min"),
        *("Chromium's elements that have no id", "its texts that are missing"),
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
        for number, each in enumerate(results[name]):
            write_texts(options.texts, f"{name}-{number}", each.pop("texts"))
            print(row(name, each), flush=True)
    path = RESULTS / "observation.json"
    if options.save:
        results = with_sites_before(path, results, list(SITES))
    medians = medians_of(results)
    missing = missing_of([page["beside_chromium"] for pages in results.values() for page in pages])
    for name, values in medians.items():
        print(f"{name}: tokens by those of axtree_txt: {values}")
    for what, counts in missing.items():
        print(f"{what}: {counts}")
    if options.save:
        about |= {"repeats": REPEATS, "tokenizer": "o200k_base", "browsergym_core": browsergym_version()}
        write_result(path, about | {"ratios": medians, "missing": missing, "sites": results})


if __name__ == "__main__":
    main()
