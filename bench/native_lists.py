"""Native lists, each set to its last option with one action: `python -m bench.native_lists [--only SITE ...] [--save]`.

On the start page of each site of `bench.tasks` and on pages that it links to, every visible `<select>` with 2 to 100
options is set twice: by `click [option]` and by `type [list] [option]`, the two ways that the grammars of all agents
have. The page's own script says whether the option was chosen, unless the choice loaded another page. Lists that a
page shows only in a menu or dialog are not opened; lists that are the same on several pages count on each.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from playwright.async_api import Error as PlaywrightError
from playwright.async_api import Page

from bench.observation import SITES
from bench.real_sites import NotAvailable, Served
from bench.result_files import RESULTS, run_info, write_result
from bench.retrieval.maps import BROWSER
from waygraph.agents.actions import AgentSession, SessionOptions, parse_brackets
from waygraph.agents.observation import ObservedElement, PageObservation
from waygraph.pipeline.browser.process.launch import launch

MAX_OPTIONS = 100
#: Actions that all agents have.
SHARED = frozenset({"click", "type"})
#: Visible lists of the main document, by their position among all lists.
_LISTS = """() => Array.from(document.querySelectorAll('select'), (list, at) => [list, at])
  .filter(([list]) => list.checkVisibility({visibilityProperty: true, opacityProperty: true}) && !list.disabled)
  .filter(([list]) => list.getBoundingClientRect().width > 1 && list.getBoundingClientRect().height > 1)
  .map(([list, at]) => [at, list.options.length])"""
_POSITION = """(xpath) => Array.from(document.querySelectorAll('select')).indexOf(
  document.evaluate(xpath, document, null, XPathResult.FIRST_ORDERED_NODE_TYPE).singleNodeValue)"""
#: Take back what was chosen, and return the last option that can be chosen.
_RESET = """(at) => {
  const list = document.querySelectorAll('select')[at];
  list.selectedIndex = list.multiple ? -1 : 0;
  const open = (one) => !one.disabled && !one.parentElement.disabled && !one.hidden;
  return Array.from(list.options, open).lastIndexOf(true);
}"""
_CHOSEN = """([at, nth]) => document.querySelectorAll('select')[at]?.options[nth]?.selected ?? null"""


async def lists_of(page: Page) -> list[int]:
    """Return the positions of the lists of a page that are to be set."""
    return [at for at, options in await page.evaluate(_LISTS) if 2 <= options <= MAX_OPTIONS]


async def find_list(page: Page, observation: PageObservation, at: int) -> ObservedElement | None:
    """Return the element of a list in an observation."""
    for each in observation.elements:
        action = each.candidate.action
        is_in_main_document = each.is_list and not action.frame and " >>> " not in action.xpath
        if is_in_main_document and await page.evaluate(_POSITION, action.xpath) == at:
            return each
    return None


async def set_list(session: AgentSession, page: Page, at: int, way: str) -> str:
    """Set a list to its last option; return what went wrong, empty if nothing did."""
    nth = await page.evaluate(_RESET, at)
    observation = await session.observe()
    of_list = await find_list(page, observation, at)
    if of_list is None:
        return "the list has no id"
    options = [each for each in observation.elements.options(of_list.ref) if ("disabled", "true") not in each.states]
    last = options[-1]
    written = f"click [{last.ref}]" if way == "click" else f"type [{of_list.ref}] [{last.name}] [0]"
    report = await session.act(parse_brackets(written, SHARED))
    if not report.done:
        return str(report)
    is_chosen = await page.evaluate(_CHOSEN, [at, nth])
    return "" if is_chosen or report.has("navigated") else f"{last} was not chosen"


async def bench(served: Served, pages: int) -> dict[str, Any]:
    """Set the lists of a site."""
    result: dict[str, Any] = {"pages": 0, "lists": 0, "click": 0, "type": 0, "problems": []}
    async with launch(BROWSER) as browser:
        context = await browser.new_context(viewport={"width": 1280, "height": 800}, storage_state=served.storage_state)
        page = await context.new_page()
        await page.goto(served.start)
        options = SessionOptions(browser=BROWSER, destructive="allow")
        async with AgentSession(page, options) as session:
            first = await session.observe()
            host = urlsplit(served.start).netloc
            links = [each.candidate.action.target.partition("#")[0] for each in first.elements]
            urls = [served.start, *(url for url in links if urlsplit(url).netloc == host and "logout" not in url)]
            urls += [url for url in served.pages if url not in urls]
            for url in list(dict.fromkeys(urls))[:pages]:
                try:
                    await page.goto(url)
                except PlaywrightError:
                    continue  # a download
                await session.observe()
                result["pages"] += 1
                for at in await lists_of(page):
                    result["lists"] += 1
                    for way in ("click", "type"):
                        problem = await set_list(session, page, at, way)
                        result[way] += not problem
                        if problem:
                            result["problems"].append(f"{urlsplit(url).path} list {at}, {way}: {problem[:300]}")
                        if page.url != url:
                            await page.goto(url)
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="*", choices=sorted(SITES), default=sorted(SITES))
    parser.add_argument("--pages", type=int, default=30, help="pages of each site")
    parser.add_argument("--scratch", type=Path, default=Path(tempfile.gettempdir()) / "waygraph-sites")
    parser.add_argument("--save", action="store_true", help="write bench/results/native_lists.json")
    options = parser.parse_args()
    options.scratch.mkdir(parents=True, exist_ok=True)
    results: dict[str, dict[str, Any]] = {}
    for name in [each for each in SITES if each in options.only]:
        try:
            with SITES[name](options.scratch) as served:
                found = results[name] = asyncio.run(bench(served, options.pages))
        except NotAvailable as error:
            print(f"{name} could not be installed: {error}", flush=True)
            continue
        by = f"by click {found['click']}, by type {found['type']}"
        print(f"{name}: {found['lists']} lists on {found['pages']} pages; {by}")
        print("\n".join(found["problems"]), flush=True)
    counts = {key: sum(each[key] for each in results.values()) for key in ("lists", "click", "type")}
    print(f"{counts['click']} of {counts['lists']} by click, {counts['type']} of {counts['lists']} by type")
    if options.save:
        write_result(RESULTS / "native_lists.json", run_info() | counts | {"sites": results})


if __name__ == "__main__":
    main()
