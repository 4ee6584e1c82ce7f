"""Recording of what the page targets of a task show, in the browser and at the end of a run.

Scoring reads these findings and nothing else, so that a stored run can be scored again without the site. Locators run
in the page, where the site's own scripts run; nothing of a task file runs in this process.
"""

from __future__ import annotations

import json
from contextlib import suppress
from typing import TYPE_CHECKING

from playwright.async_api import Error as PlaywrightError
from playwright.async_api import TimeoutError as PlaywrightTimeout

from waygraph.agents.scoring.final_state import FindingProblem, PageFinding, TargetKey
from waygraph.agents.scoring.shop_access import SETTINGS_NEEDED
from waygraph.agents.tasks.page_functions import (
    LAST_URL,
    PageCall,
    PageFunction,
    parse_locator_call,
    parse_url_call,
    post_url,
)
from waygraph.agents.tasks.task import LAST_PAGE, PageTarget, Task
from waygraph.core.errors import WaygraphError

if TYPE_CHECKING:
    from playwright.async_api import Page
    from pydantic import JsonValue

    from waygraph.agents.scoring.shop_access import ShopAccess

#: Longest wait for a page's requests to end, in milliseconds. The evaluators that this follows sleep that long.
QUIET_CAP_MS = 3_000
#: Longest load of a page, in milliseconds.
LOAD_CAP_MS = 30_000

#: The role of a member on GitLab's page of members: the label in the row whose account has the name.
_MEMBER_ROLE = """(account) => {
  const names = [...document.querySelectorAll("td[data-label='Account'] span.gl-avatar-labeled-sublabel")];
  const row = names.findIndex((name) => name.outerText === `@${account}`);
  return document.querySelectorAll("td.col-max-role span")[row].outerText;
}"""


class PageTargetError(WaygraphError):
    """A page target could not be looked at; the finding says so."""

    def __init__(self, problem: FindingProblem, message: str) -> None:
        super().__init__(message)
        self.problem = problem


async def record_findings(task: Task, page: Page, shop: ShopAccess | None = None) -> dict[TargetKey, PageFinding]:
    """Look at all page targets of a task.

    Pages other than the one that the agent left are opened in a tab of their own, in the same session, so that the
    agent's page stays as it is.

    Parameters
    ----------
    task
        The task.
    page
        The page that the agent left.
    shop
        Access to the shop's API, which some targets call; None: there is none.

    Returns
    -------
    dict
        Findings by number of the target and of its alternative. A target that could not be looked at has a finding
        with a problem.
    """
    if task.evaluation is None:
        return {}
    recorder = _Recorder(page, shop)
    return {
        (number, option): await recorder.finding(each)
        for number, target in enumerate(task.evaluation.program_html)
        for option, each in enumerate((target, *target.alternatives))
    }


class _Recorder:
    def __init__(self, page: Page, shop: ShopAccess | None) -> None:
        self._page = page
        self._shop = shop

    async def finding(self, target: PageTarget) -> PageFinding:
        """Return what one target shows."""
        url = self._page.url
        try:
            if target.url == LAST_PAGE:
                return PageFinding(url=url, value=await self._value(self._page, target))
            url = await self._url(target.url)
            tab = await self._page.context.new_page()
            try:
                await _load(tab, url)
                return PageFinding(url=url, value=await self._value(tab, target))
            finally:
                await tab.close()
        except PageTargetError as error:
            return PageFinding(url=url, problem=error.problem, detail=error.message)
        except PlaywrightError as error:
            return PageFinding(url=url, problem=FindingProblem.UNREACHABLE, detail=_first_line(error))

    async def _url(self, text: str) -> str:
        call = parse_url_call(text)
        if call is None:
            return text
        if call.function is PageFunction.POST_URL:
            return post_url(call.arguments[0].replace(LAST_URL, self._page.url))
        return await self._call_shop(call)

    async def _value(self, page: Page, target: PageTarget) -> JsonValue:
        if not target.locator.strip():
            return await page.content()
        call = parse_locator_call(target.locator)
        if call is not None and call.function is not PageFunction.MEMBER_ROLE:
            return await self._call_shop(call)
        for action in target.prep_actions:
            try:
                await page.evaluate(f"() => {action}")
            except PlaywrightError:
                break  # what the action would have opened is then missing from the value, which the check shows
        try:
            if call is not None:
                return _plain(await page.evaluate(_MEMBER_ROLE, call.arguments[1]))
            return _plain(await page.evaluate(f"() => {target.locator}"))
        except PlaywrightError as error:
            raise PageTargetError(FindingProblem.SCRIPT_FAILED, _first_line(error)) from error

    async def _call_shop(self, call: PageCall) -> str:
        if self._shop is None:
            raise PageTargetError(FindingProblem.NOT_CONFIGURED, f"{call.function} needs {SETTINGS_NEEDED}")
        try:
            match call.function:
                case PageFunction.LATEST_ORDER_URL:
                    return await self._shop.latest_order_url()
                case PageFunction.LATEST_REVIEW_AUTHOR:
                    return await self._shop.latest_review_author(call.arguments[0])
                case _:
                    return await self._shop.latest_review_rating(call.arguments[0])
        except WaygraphError as error:
            raise PageTargetError(FindingProblem.CALL_FAILED, error.message) from error


async def _load(page: Page, url: str) -> None:
    try:
        await page.goto(url, wait_until="load", timeout=LOAD_CAP_MS)
    except PlaywrightError as error:
        raise PageTargetError(FindingProblem.UNREACHABLE, _first_line(error)) from error
    with suppress(PlaywrightTimeout):  # a page that is never quiet is looked at after the cap
        await page.wait_for_load_state("networkidle", timeout=QUIET_CAP_MS)


def _plain(value: object) -> JsonValue:
    """Return a value of a script as JSON holds it; what it cannot hold (dates, big numbers) becomes text."""
    plain: JsonValue = json.loads(json.dumps(value, default=str))
    return plain


def _first_line(error: PlaywrightError) -> str:
    return (error.message.splitlines() or [""])[0]
