"""Reports as files, opened from disk in a real browser: they draw themselves and request nothing.

Screenshots of the reports are left in the temporary folder of the tests.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.agent_run import FAILED, FOUND, MISSING, make_agent_run
from tests.page_store import HOSTILE, ODD, make_store
from tests.page_views import NARROW, WIDE, serious_violations, take_pictures, watch
from waygraph.cli import main
from waygraph.core.errors import SiteUnreachable
from waygraph.index.store import Store
from waygraph.pipeline.jobs.report.outcomes import (
    DepthRecord,
    ErrorRecord,
    Exploration,
    Publication,
    RoundRecord,
    SiteOutcome,
)
from waygraph.pipeline.jobs.report.report_file import write_report
from waygraph.pipeline.jobs.report.run_report import RunReport

RUN = "20261122-062321-0a1b2c"

Open = Callable[..., Page]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The store of the tests of the page, with the report of a run."""
    location = make_store(str(tmp_path_factory.mktemp("report") / "maps"))
    report = RunReport(
        run_id=RUN, store="maps", started="2026-11-22T06:23:21+00:00", finished="2026-11-22T06:25:21+00:00",
        seconds=120, interrupted=False, phases={"work": 100.0}, duplicates=(), sites=list(outcomes()),
    )  # fmt: skip
    write_report(Store.open(location), report, report.sites)
    return location


def outcomes() -> Iterator[SiteOutcome]:
    """Yield outcomes of sites: of the two in the store, and of others that a limit stopped or that failed."""
    for number, site in enumerate(("tea.example", "odd.example:8080", *(f"site{i}.example" for i in range(6)))):
        depths = tuple(
            DepthRecord(
                depth=depth, states=3 * number + depth + 1, activations=20, seconds=9, states_per_minute=20 + number
            )
            for depth in range(3)
        )
        rounds = tuple(RoundRecord(states=4, activations=20, seconds=1, gain=5 / (1 + each)) for each in range(9))
        exploration = Exploration(
            states=10 + number, edges=30, inherited_edges=5, seconds=27, partial=number > 4,
            stopped_by="max_states" if number > 4 else "", depths=depths, counters={}, rounds=rounds,
            skipped={"external": 12 + number, HOSTILE["home"]: 2}, failed={"element_gone": 1}, failures=(),
            expected_gain=4.0 if number > 4 else 0.0,
        )  # fmt: skip
        published = Publication(
            version=1, encoded=9, reused=0, encode_seconds=1, publish_seconds=1, states=10 + 7 * number
        )
        yield SiteOutcome(
            site=site, start_url=f"http://{site}/", status="published", attempts=1, seconds=21.5 * (number + 1),
            exploration=exploration, publication=published,
        )  # fmt: skip
    error = ErrorRecord.of(SiteUnreachable(HOSTILE["home"], hint="Check it."))
    yield SiteOutcome(
        site="bad.example", start_url="http://bad.example/", status="failed", attempts=2, seconds=3, error=error
    )


@pytest.fixture
def open_report(page_browser: Browser, store: str, tmp_path: Path) -> Iterator[Open]:
    """Return a function that runs a command that writes a report, or writes a run of agents, and opens the file."""
    context = page_browser.new_context(viewport=WIDE)
    file = tmp_path / "report.html"
    problems = watch(context, file.as_uri(), "data:", "blob:", with_console=True)

    def write_and_open(*words: str, option: str = "-o") -> Page:
        if words:
            assert main([*words, option, str(file), "--store", store]) == 0
        else:
            make_agent_run(tmp_path)  # writes its report with the run
        page = context.new_page()
        page.goto(file.as_uri())
        return page

    yield write_and_open
    context.close()
    assert problems == []


def test_the_report_of_a_site_shows_its_map_velocity_coverage_reasons_and_states(open_report, pictures):
    page = open_report("report", "tea.example")
    assert page.title() == "tea.example, version 2"
    expect(page.get_by_role("application", name="Map of tea.example: 4 states")).to_be_visible()
    expect(
        page.get_by_role("img", name="New states per minute by depth: depth 0 10, depth 1 20, depth 2 10")
    ).to_be_visible()
    coverage = page.get_by_role("region", name="Coverage")
    expect(coverage).to_contain_text("Of 5 discovered elements, 60% were acted on.")
    expect(coverage).to_contain_text("1 was not visited")
    expect(page.get_by_role("img", name="Skipped elements, by reason: hazard 1")).to_be_visible()
    expect(page.get_by_role("img", name="Failed actions, by reason: element gone 1")).to_be_visible()
    missing = page.get_by_role("table")
    expect(missing).to_contain_text('click link "Sign out"')
    sheet = page.get_by_role("region", name="States", exact=True)
    expect(sheet.locator("img")).to_have_count(3)
    take_pictures(page, pictures, "report-site")
    page.screenshot(path=pictures / "report-site-full.png", full_page=True)
    sheet.get_by_role("button", name="Returns and refunds").click()
    state = page.get_by_role("region", name="State", exact=True)
    expect(state).to_contain_text("1 action from the start page")
    expect(state.locator("img")).to_be_visible()
    state.get_by_role("button", name="Close").click()
    expect(state).to_have_count(0)


def test_a_version_of_a_site_can_be_reported(open_report):
    page = open_report("report", "tea.example", "--version", "1")
    expect(page.get_by_role("application", name="Map of tea.example: 3 states")).to_be_visible()
    expect(page.get_by_role("region", name="Coverage")).to_contain_text("were not recorded")


def test_hostile_texts_are_texts_in_a_report(open_report):
    page = open_report("report", ODD.site)
    missing = page.get_by_role("table")
    expect(missing).to_contain_text(HOSTILE["home"])
    sheet = page.get_by_role("region", name="States", exact=True)
    sheet.get_by_role("button", name="<script>").click()
    expect(page.get_by_role("region", name="State", exact=True).get_by_role("heading")).to_contain_text("<script>")
    assert page.title() == f"{ODD.site}, version 1"
    assert page.locator("main script, main [onerror]").count() == 0
    for size in (WIDE, NARROW):
        page.set_viewport_size(size)
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_the_report_of_a_run_shows_all_its_sites(open_report, pictures):
    page = open_report("report", RUN)
    expect(page.get_by_role("heading", name=f"Run {RUN}")).to_be_visible()
    expect(page.locator(".numbers")).to_contain_text("9 sites")
    expect(page.get_by_role("img", name="New states per minute by depth: depth 0 median 23.5")).to_be_visible()
    expect(page.get_by_role("img", name="Elements and URLs that were skipped: external 124, <script>")).to_be_visible()
    expect(page.get_by_role("region", name="Sites that failed").first).to_contain_text(HOSTILE["home"])
    expect(page.get_by_role("region", name="Start pages").locator("figure")).to_have_count(8)
    take_pictures(page, pictures, "report-run")
    page.set_viewport_size({"width": 1280, "height": 4000})
    page.screenshot(path=pictures / "report-run-full.png")
    assert page.locator("main script, main [onerror]").count() == 0


def test_the_page_of_a_diff_shows_states_before_and_after(open_report, pictures):
    page = open_report("diff", "tea.example", option="--html")
    assert page.title() == "tea.example: version 1 to 2"
    changes = page.get_by_role("region", name="Changes", exact=True)
    expect(changes).to_contain_text("1 changed · 1 new · 2 states unchanged")
    state = page.get_by_role("region", name="State", exact=True)
    expect(state.get_by_role("list", name="Texts that are gone")).to_contain_text("Old delivery address")
    for alternative in ("Before: Version 1", "After: Version 2"):
        expect(state.get_by_alt_text(alternative)).to_be_visible()
    take_pictures(page, pictures, "report-changes")
    page.keyboard.press("ArrowDown")
    expect(state.get_by_role("heading").first).to_have_text("Returns and refunds")
    page.go_back()
    expect(page.get_by_role("link", name="Show it on the map")).to_have_count(0)


def test_the_report_of_a_run_of_agents_shows_its_tasks_and_replays_them(open_report, pictures):
    page = open_report()
    expect(page.locator(".numbers")).to_contain_text("1 of 3 tasks succeeded")
    expect(page.locator(".numbers")).to_contain_text("33% to 67%")
    expect(page.get_by_role("region", name="By evaluator").first).to_contain_text("string_match")
    tasks = page.get_by_role("region", name="Tasks").get_by_role("table")
    expect(tasks.get_by_role("row")).to_have_count(4)
    expect(tasks.get_by_role("row").last).to_contain_text("The shop did not answer.")
    expect(tasks.locator("img")).to_have_count(1)
    take_pictures(page, pictures, "report-agents")
    page.get_by_role("button", name="success 1").click()
    expect(tasks.get_by_role("row")).to_have_count(2)
    tasks.get_by_role("link", name=FOUND).click()
    expect(page.get_by_role("heading", level=1)).to_have_text("How long can I return an order?")
    step = page.get_by_role("region", name="Step", exact=True)
    expect(step.get_by_role("heading").first).to_have_text("click link Account")
    expect(step.locator("img")).to_have_count(2)
    page.keyboard.press("ArrowDown")
    expect(step.get_by_role("heading").first).to_have_text("click link Returns")
    take_pictures(page, pictures, "report-agents-step")
    page.get_by_role("button", name="Checks").click()
    expect(page.get_by_role("region", name="Checks").get_by_role("table")).to_contain_text("30 days")
    page.go_back()
    expect(tasks).to_be_visible()


def test_the_tree_of_a_search_shows_order_returns_and_what_was_not_done(open_report, pictures):
    page = open_report()
    page.get_by_role("link", name=FOUND).click()
    page.get_by_role("button", name="Search tree").click()
    tree = page.get_by_role("group", name="Search tree")
    expect(tree.get_by_role("button")).to_have_count(3)
    expect(tree.locator("img")).to_have_count(3)
    expect(tree.locator(".tree-edge")).to_have_count(2)
    expect(tree.locator(".tree-return")).to_have_count(1)
    answer = tree.get_by_role("button", name="2. Returns page")
    expect(answer).to_contain_text("answer")
    tree.get_by_role("button", name="0. Tea & Coffee").click()
    state = page.get_by_role("region", name="State 0")
    for text in ("the frontier is full", "News of map: the same action", "led to 2"):
        expect(state).to_contain_text(text)
    take_pictures(page, pictures, "report-agents-tree")
    steps = page.get_by_role("region", name="Order of the steps").get_by_role("row")
    expect(steps.nth(2)).to_contain_text("to 0 over map:0, then url:0")
    expect(page.get_by_role("region", name="Known and not visited").first).to_contain_text("Ninth")
    tree.get_by_role("button", name="0. Tea & Coffee").press("ArrowRight")
    page.keyboard.press("ArrowDown")
    expect(answer).to_be_focused()
    expect(page.get_by_role("region", name="State 2")).to_contain_text("visited in step 2")
    assert "state=2" in page.url


def test_hostile_texts_of_a_run_of_agents_are_texts(open_report):
    page = open_report()
    title = page.title()
    page.get_by_role("link", name=FAILED).click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("<script>")
    for part in ("Step", "Search tree", "Checks"):
        page.get_by_role("button", name=part, exact=True).click()
        expect(page.locator(".replay-part .panel")).to_contain_text("<script>")
        if part == "Search tree":
            page.get_by_role("group", name="Search tree").get_by_role("button").first.click()
        for size in (WIDE, NARROW):
            page.set_viewport_size(size)
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert page.title() == title
    assert page.locator("main script, main [onerror], main [href^='javascript']").count() == 0
    page.goto(page.url.split("#", maxsplit=1)[0] + f"#/tasks/{MISSING}")
    expect(page.get_by_text("No step was taken")).to_be_visible()


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["nowhere.example"], 3),
        (["20200101-000000-ffffff"], 3),
        ([RUN, "--version", "1"], 2),
        (["tea.example", "--version", "9"], 3),
    ],
)
def test_what_cannot_be_reported_is_an_error(store, tmp_path, words, code):
    assert main(["report", *words, "-o", str(tmp_path / "x.html"), "--store", store]) == code
    assert not (tmp_path / "x.html").exists()


@pytest.mark.parametrize("colours", ["light", "dark"])
def test_axe_finds_nothing_serious_in_reports(open_report, colours):
    if "WAYGRAPH_AXE" not in os.environ:
        pytest.skip("needs axe-core from the npm registry: make ui-check")
    commands: list[tuple[list[str], dict[str, Any]]] = [
        (["report", "tea.example"], {}), (["report", RUN], {}), (["diff", "tea.example"], {"option": "--html"}),
        ([], {}),
    ]  # fmt: skip
    for words, options in commands:
        page = open_report(*words, **options)
        page.emulate_media(color_scheme=colours)
        for view in ("", f"#/tasks/{FOUND}", f"#/tasks/{FOUND}?show=tree&state=0") if not words else ("",):
            page.evaluate("view => { location.hash = view; }", view)
            for size in (WIDE, NARROW):
                page.set_viewport_size(size)
                assert serious_violations(page) == [], (words, view, size["width"])
