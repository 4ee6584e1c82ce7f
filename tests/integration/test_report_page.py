"""Reports as files, opened from disk in a real browser: they draw themselves and request nothing.

Screenshots of the reports are left in the temporary folder of the tests.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

from tests.page_store import HOSTILE, ODD, make_store
from tests.page_views import NARROW, WIDE, serious_violations, take_pictures
from waygraph.cli import main
from waygraph.core.errors import SiteUnreachable
from waygraph.index.store import Store
from waygraph.pipeline.browser.process.find import find_browser
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


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as driver:
        flags = ["--disable-background-networking", "--host-resolver-rules=MAP * ~NOTFOUND"]
        started = driver.chromium.launch(executable_path=str(find_browser().path), args=flags)
        yield started
        started.close()


@pytest.fixture(scope="module")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("pictures")


@pytest.fixture
def open_report(browser: Browser, store: str, tmp_path: Path) -> Iterator[Open]:
    """Return a function that runs a command that writes a report, and opens the file."""
    context = browser.new_context(viewport=WIDE)
    problems: list[str] = []
    context.on("weberror", lambda error: problems.append(str(error.error)))
    context.on("console", lambda message: problems.append(message.text) if message.type == "error" else None)
    file = tmp_path / "report.html"
    own = (file.as_uri(), "data:", "blob:")
    context.on("request", lambda request: None if request.url.startswith(own) else problems.append(request.url))

    def write_and_open(*words: str, option: str = "-o") -> Page:
        assert main([*words, option, str(file), "--store", store]) == 0
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
        (["report", "tea.example"], {}), (["report", RUN], {}), (["diff", "tea.example"], {"option": "--html"})
    ]  # fmt: skip
    for words, options in commands:
        page = open_report(*words, **options)
        page.emulate_media(color_scheme=colours)
        for size in (WIDE, NARROW):
            page.set_viewport_size(size)
            assert serious_violations(page) == [], (words, size["width"])
