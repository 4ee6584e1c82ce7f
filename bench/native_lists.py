"""Native lists, each set to its last option with one action: `python -m bench.native_lists [--only SITE ...] [--save]`.

Every visible `<select>` with 2 to 100 options is set twice: by `click [option]` and by `type [list] [option]`, the two
ways that the grammars of all agents have. The page's own script says whether the option was chosen, unless the choice
loaded another page. A list that several pages have counts once for each site. Lists are looked for

- on the start page of each site of `bench.tasks`, on the pages that it links to, and on those of up to 100 pages, found
  by following links in their HTML, that have a `<select>` there,
- on the pages where the reference solutions of the tasks end, after each of their steps that sends nothing, such as
  opening a dialog.
"""

from __future__ import annotations

import argparse
import asyncio
import re
import tempfile
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import asdict, dataclass, field
from html import unescape
from pathlib import Path
from typing import Literal
from urllib.parse import urldefrag, urljoin, urlsplit

from playwright.async_api import BrowserContext, Page
from playwright.async_api import Error as PlaywrightError

from bench.observation import SITES
from bench.real_sites import NotAvailable, Served
from bench.result_files import RESULTS, run_info, with_sites_before, write_result
from bench.retrieval.maps import BROWSER
from bench.tasks.replay import do_step
from bench.tasks.site_tasks import ReplayedEnd, ReplayedStep, read_site
from waygraph.agents.actions import AgentSession, SessionOptions, parse_brackets
from waygraph.agents.observation import ObservedElement, PageObservation
from waygraph.pipeline.browser.process.launch import launch

MAX_OPTIONS = 100
MAX_FETCHED = 100
#: Pages with lists that no link leads to.
MORE_PAGES = {"jupyterlab": ("lab/tree/counting.ipynb",)}
TASK_SITES = [name for name in SITES if name != "large"]
#: Actions that all agents have.
SHARED = frozenset({"click", "type"})
_LINK = re.compile(r"""<a\s[^>]*?href=["']([^"'#]+)""", re.IGNORECASE)
#: Visible lists of the main document: position among all lists, number of options, names.
_LISTS = """() => Array.from(document.querySelectorAll('select'), (list, at) => [list, at])
  .filter(([list]) => list.checkVisibility({visibilityProperty: true, opacityProperty: true}) && !list.disabled)
  .filter(([list]) => list.getBoundingClientRect().width > 1 && list.getBoundingClientRect().height > 1)
  .map(([list, at]) => [at, list.options.length,
    [list.name, list.id, ...Array.from(list.options, (one) => one.label)].join()])"""
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


@dataclass
class SiteLists:
    """What came of the lists of a site: pages with new lists, lists, and those that were set each way."""

    pages: int = 0
    lists: int = 0
    click: int = 0
    type: int = 0
    problems: list[str] = field(default_factory=list)


async def find_list(page: Page, observation: PageObservation, at: int) -> ObservedElement | None:
    """Return the element of a list in an observation."""
    for each in observation.elements:
        action = each.candidate.action
        is_in_main_document = each.is_list and not action.frame and " >>> " not in action.xpath
        if is_in_main_document and await page.evaluate(_POSITION, action.xpath) == at:
            return each
    return None


async def set_list(session: AgentSession, page: Page, at: int, way: Literal["click", "type"]) -> str:
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


class _Lists:
    """Sets the lists of a site, each once."""

    def __init__(self, page: Page, session: AgentSession) -> None:
        self._page = page
        self._session = session
        self._seen: set[str] = set()
        self.found = SiteLists()

    async def set_new(self, reach: Callable[[], Awaitable[None]]) -> bool:
        """Set the lists of the page that were not set before; return whether there were any.

        Parameters
        ----------
        reach
            Leads to the page as it was, after a choice that changed it.
        """
        new = {key: at for key, at in (await self._shown()).items() if key not in self._seen}
        self._seen |= new.keys()
        for key, at in new.items():
            self.found.lists += 1
            for way in ("click", "type"):
                if (await self._shown()).get(key) != at:  # a choice hid it, or led to another page
                    await reach()
                problem = await set_list(self._session, self._page, at, way)
                setattr(self.found, way, getattr(self.found, way) + (not problem))
                if problem:
                    self.found.problems.append(f"{urlsplit(self._page.url).path} list {at}, {way}: {problem[:300]}")
        self.found.pages += bool(new)
        return bool(new)

    async def _shown(self) -> dict[str, int]:
        """Return the positions of the lists that are to be set, by what tells them apart."""
        lists = await self._page.evaluate(_LISTS)
        return {key: at for at, options, key in lists if 2 <= options <= MAX_OPTIONS}


async def pages_of(context: BrowserContext, served: Served, linked: list[str]) -> list[str]:
    """Return the start page, what it links to, and the pages whose HTML has a list, as far as links lead."""
    host = urlsplit(served.start).netloc
    wanted = dict.fromkeys([served.start, *linked])
    queue = deque(dict.fromkeys([*wanted, *served.pages]))
    known, fetched = set(queue), 0
    while queue and fetched < MAX_FETCHED:
        url = queue.popleft()
        answer = await context.request.get(url)
        fetched += 1
        html = await answer.text() if "html" in answer.headers.get("content-type", "") else ""
        if "<select" in html:
            wanted[url] = None
        for link in _LINK.findall(html):
            target = urldefrag(urljoin(url, unescape(link))).url
            if urlsplit(target).netloc == host and "logout" not in target and target not in known:
                known.add(target)
                queue.append(target)
    return list(wanted)


async def bench(name: str, served: Served, limit: int) -> SiteLists:
    """Set the lists of a site."""
    async with launch(BROWSER) as browser:
        context = await browser.new_context(viewport={"width": 1280, "height": 800}, storage_state=served.storage_state)
        page = await context.new_page()
        await page.goto(served.start)
        async with AgentSession(page, SessionOptions(browser=BROWSER, destructive="allow")) as session:
            lists = _Lists(page, session)
            host = urlsplit(served.start).netloc
            targets = [each.candidate.action.target.partition("#")[0] for each in (await session.observe()).elements]
            linked = [url for url in targets if urlsplit(url).netloc == host and "logout" not in url]
            urls = await pages_of(context, served, linked[:limit])
            origin = f"http://{host}"
            urls += [urljoin(origin, path) for path in MORE_PAGES.get(name, ())]
            ends = [end for each in read_site(name, origin).replays.values() for end in (each.right, each.wrong)]
            for end in dict.fromkeys([*(ReplayedEnd(path=url) for url in urls), *(end for end in ends if end.path)]):
                while await _set_new_after(lists, served, session, page, end):
                    pass
    return lists.found


async def _set_new_after(lists: _Lists, served: Served, session: AgentSession, page: Page, end: ReplayedEnd) -> bool:
    """Go to a page and do steps there until new lists are shown; set them, and return whether there were any."""
    steps: list[ReplayedStep] = []
    url = urljoin(served.start, f"/{end.path}" if "://" not in end.path else end.path)

    async def reach() -> None:
        served.forget()
        await page.goto("about:blank")  # a page is loaded anew, whatever the fragment
        await page.goto(url)
        for step in steps:
            await do_step(page, step)
        await session.observe()

    try:
        await reach()
        if await lists.set_new(reach):
            return True
        for step in end.steps:
            if step.do == "send":
                break
            await do_step(page, step)
            steps.append(step)
            await session.observe()
            if await lists.set_new(reach):
                return True
    except PlaywrightError as error:  # a download, or a step that another one must precede
        print(f"{url}: {str(error).splitlines()[0]}", flush=True)
    return False


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="*", choices=sorted(TASK_SITES), default=sorted(TASK_SITES))
    parser.add_argument("--pages", type=int, default=30, help="pages that the start page links to")
    parser.add_argument("--scratch", type=Path, default=Path(tempfile.gettempdir()) / "waygraph-sites")
    parser.add_argument("--save", action="store_true", help="write bench/results/native_lists.json")
    options = parser.parse_args()
    options.scratch.mkdir(parents=True, exist_ok=True)
    results: dict[str, SiteLists] = {}
    for name in [each for each in TASK_SITES if each in options.only]:
        try:
            with SITES[name](options.scratch) as served:
                found = results[name] = asyncio.run(bench(name, served, options.pages))
        except NotAvailable as error:
            print(f"{name} could not be installed: {error}", flush=True)
            continue
        by = f"by click {found.click}, by type {found.type}"
        print(f"{name}: {found.lists} lists on {found.pages} pages; {by}")
        print("\n".join(found.problems), flush=True)
    path = RESULTS / "native_lists.json"
    rows = {name: asdict(found) for name, found in results.items()}
    if options.save:
        rows = with_sites_before(path, rows, TASK_SITES)
    counts = {key: sum(row[key] for row in rows.values()) for key in ("lists", "click", "type")}
    print(f"{counts['click']} of {counts['lists']} by click, {counts['type']} of {counts['lists']} by type")
    if options.save:
        write_result(path, run_info() | counts | {"sites": rows})


if __name__ == "__main__":
    main()
