"""Page targets looked at in Chromium on the demo shop, stored, and scored without the shop."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pydantic import SecretStr

from tests.browsers import BROWSERS
from waygraph.agents.scoring.dialects import DIALECTS, DialectName
from waygraph.agents.scoring.final_state import FindingProblem, PageFinding
from waygraph.agents.scoring.page_recorder import record_findings
from waygraph.agents.scoring.run_folder import RunFolder, StoredTaskFile, TaskAnswer, TaskRunManifest
from waygraph.agents.scoring.run_score import score_run
from waygraph.agents.scoring.shop_access import ShopAccess
from waygraph.agents.tasks.formats import read_row, with_site_urls
from waygraph.agents.tasks.task import Task
from waygraph.core.errors import SiteUnreachable
from waygraph.demo_site import DemoSite
from waygraph.demo_site.local_server import LocalServer, Request, Response

UPSTREAM = DIALECTS[DialectName.WEBARENA]


def target(url: str, locator: str, must_include: str, **more: object) -> dict:
    return {"url": url, "locator": locator, "required_contents": {"must_include": [must_include]}, **more}


HEADING = "document.querySelector('h1').outerText"
TARGETS = [
    target("last", HEADING, "Pebble mug"),
    target("__SHOP__/admin/customers/2", "", "tobias@post.example"),
    target("__SHOP__/help/shipping", "[...document.querySelectorAll('td')].map(e => e.outerText)", "'4 to 6'"),
    target("__SHOP__/p/ember-table-lamp", "document.querySelector('.none').outerText", "x"),
    target("http://127.0.0.1:9/", HEADING, "x"),
    target("func:reddit_get_post_url('__last_url__')", HEADING, "Pebble mug"),
    target("last", "func:gitlab_get_project_memeber_role(__page__, \"x' + document.title + '\")", "x"),
    target("last", "func:shopping_get_sku_latest_review_author('A 1')", "x"),
    target("__SHOP__/about", "document.body.dataset.prepared", "yes",
           prep_actions=["document.body.dataset.prepared = 'yes'"]),
    target("__SHOP__/about", "document.createTreeWalker(document)", "x"),
]  # fmt: skip


@pytest.fixture(scope="module")
def recorded() -> Iterator[tuple[Task, dict[tuple[int, int], PageFinding], list[str]]]:
    with DemoSite() as site:
        row = {
            "task_id": "1", "intent": "Look", "sites": ["shop"], "start_url": "__SHOP__",
            "eval": {"eval_types": ["program_html"], "program_html": TARGETS},
        }  # fmt: skip
        task = read_row(with_site_urls(row, {"__SHOP__": site.url})[0])

        async def look() -> tuple[dict[tuple[int, int], PageFinding], list[str]]:
            browser = await BROWSERS.browser()
            context = await browser.new_context()
            try:
                page = await context.new_page()
                await page.goto(f"{site.url}p/pebble-mug")
                return await record_findings(task, page), [tab.url for tab in context.pages]
            finally:
                await context.close()

        findings, urls = BROWSERS.run(look())
        yield task, findings, urls


def test_values_are_those_of_the_pages(recorded):
    _, findings, _ = recorded
    assert findings[0, 0].value == "Pebble mug"
    assert "<html" in findings[1, 0].value
    assert findings[2, 0].value[:3] == ["Nordics", "2 to 3", "€6, free from €80"]
    assert findings[5, 0].value == "Pebble mug"
    assert findings[8, 0].value == "yes"


def test_what_could_not_be_looked_at_is_said(recorded):
    _, findings, _ = recorded
    problems = {key[0]: finding.problem for key, finding in findings.items() if finding.problem is not None}
    assert problems == {
        3: FindingProblem.SCRIPT_FAILED,
        4: FindingProblem.UNREACHABLE,
        6: FindingProblem.SCRIPT_FAILED,
        7: FindingProblem.NOT_CONFIGURED,
    }


def test_the_agents_page_stays_as_it_is(recorded):
    _, _, urls = recorded
    assert [url.partition("/p/")[2] for url in urls] == ["pebble-mug"]


async def test_a_stored_run_is_scored_without_the_site(recorded, tmp_path: Path):
    task, findings, _ = recorded
    folder = RunFolder(tmp_path)
    file = StoredTaskFile(name="own", sha256="0" * 64)
    folder.write_manifest(TaskRunManifest(created="2026-11-23T10:00:00Z", task_file=file, tasks=("1",)))
    folder.write_attempt(task, TaskAnswer(answer="", url="http://127.0.0.1/"), findings)
    (score,) = (await score_run(folder.read())).scores
    assert [check.score for check in score.checks] == [1, 1, 1, 0, None, 1, 0, None, 1, 0]
    assert score.reward == 0


# ---- the shop's API --------------------------------------------------------------------------------------------------


def shop_api(request: Request) -> Response:
    pages = {
        "/rest/default/V1/integration/admin/token": '"t0k"',
        "/rest/V1/orders": '{"items": [{"increment_id": "000000189"}]}',
        "/rest/V1/products/A 1/reviews": '[{"nickname": "Old"}, {"nickname": "New", "ratings": [{"percent": 80}]}]',
        "/rest/V1/products/B/reviews": "[]",
    }
    body = pages.get(request.path)
    return Response(body or "no", status=200 if body else 404, content_type="application/json")


async def test_orders_and_reviews_are_read_from_the_shops_api():
    with LocalServer(shop_api) as server:
        shop = ShopAccess(server.url, "admin", SecretStr("secret"))
        assert await shop.latest_order_url() == f"{server.url}sales/order/view/order_id/189/"
        assert (await shop.latest_review_author("A 1"), await shop.latest_review_rating("A 1")) == ("New", "80")
        assert (await shop.latest_review_author("B"), await shop.latest_review_rating("B")) == ("", "")
        with pytest.raises(SiteUnreachable):
            await shop.latest_review_author("C")
        assert [method for method, _ in server.requests].count("POST") == 1
