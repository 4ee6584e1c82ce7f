"""Pictures of the page of the service for the documentation: maps the demo shop, changes it, and opens every view.

    python -m bench.ui_pictures [--all DIR] [--keep DIR]

The shop is mapped twice, with changes between (`change`), and a teleport with the map of the first version walks
through the changed shop, so that its replay drifts. Pictures of `docs/images/` are 1280 pixels wide and light, of a few
views also dark or 390 pixels wide. `--all` writes every view in both sizes and both colours, to look at. `--keep` keeps
the maps and the trace in a folder, and uses them again.

The run fails if a view reports an error, violates the policy of the page, or requests anything of another host.
"""

from __future__ import annotations

import argparse
import asyncio
import io
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from PIL import Image
from playwright.sync_api import Browser, Page, expect, sync_playwright

from bench.ui import service
from waygraph.cli.browser_page import new_mapped_page
from waygraph.core.settings import BrowserSettings, EncodeSettings, Settings
from waygraph.core.urls import site_key
from waygraph.demo_site import DemoSite
from waygraph.index.store import Store
from waygraph.pipeline.browser.process.find import find_browser
from waygraph.pipeline.browser.process.launch import launch
from waygraph.pipeline.encode.registry import create_encoder
from waygraph.pipeline.explore.exploration import explore_site
from waygraph.pipeline.jobs.publishing.draft import encode_draft
from waygraph.sdk.local import StoreMap
from waygraph.sdk.teleport import teleport
from waygraph.sdk.teleport_recorder import TeleportRecorder
from waygraph.serve.views.site_report import site_report

IMAGES = Path(__file__).parents[1] / "docs" / "images"
#: Always the same, so that the pictures name the same site.
PORT = 8400
DEPTH = 2
WIDE, NARROW = (1280, 760), (390, 844)
QUERY = "where can I return something"
_LOOPBACK_ONLY = BrowserSettings(extra_args=("--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",))


@dataclass(frozen=True)
class Maps:
    """A store with two versions of the shop's map, and the trace of a walk."""

    store: str
    trace: Path
    site: str


def make_maps(folder: Path) -> Maps:
    """Map the shop, change it, walk through it with the old map, and map it again."""
    maps = Maps(str(folder / "maps"), folder / "walk.json", f"127.0.0.1:{PORT}")
    if maps.trace.exists():
        return maps
    store = Store.open(maps.store, create=True)
    settings = Settings(store=maps.store, browser=_LOOPBACK_ONLY, explore={"depth": DEPTH})
    encoder = create_encoder(EncodeSettings())
    with DemoSite(port=PORT) as shop:
        for _ in range(2):
            capture = asyncio.run(explore_site(shop.url, settings=settings, blobs=store.blobs))
            assert site_key(shop.url) == capture.site == maps.site
            store.publish(encode_draft(capture, settings, encoder))
            print(f"version {store.head(maps.site)}: {len(capture.graph)} states", flush=True)
            if not maps.trace.exists():
                change(shop)
                asyncio.run(record_walk(maps, settings))
    return maps


def change(shop: DemoSite) -> None:
    """Change the shop as its owner does."""
    shop.state.cart = {"tide-vase": 3}
    shop.state.addresses.append(("Workshop", "Nygårdsgaten 5, 5015 Bergen"))
    shop.state.settings["currency"] = "NOK"
    shop.state.holiday = True


async def record_walk(maps: Maps, settings: Settings) -> None:
    """Walk from the cart to a product that was taken out of it, so that the first step fails, and record it."""
    source = StoreMap(maps.store, settings)
    try:
        graph = Store.open(maps.store).read(maps.site).graph
        target = next(node for node in graph.nodes.values() if node.url.endswith("/p/pebble-mug") and node.addressable)
        async with launch(settings.browser) as browser:
            page = await new_mapped_page(browser, source.site(maps.site), settings)
            await page.goto(f"http://{maps.site}/cart")
            recorder = TeleportRecorder(source, maps.site, target.id)
            await recorder.begin(page)
            result = await teleport(
                page, source, maps.site, target.id, allow_goto=False, on_step=recorder.on_step, report=False
            )
            replay = await recorder.finish(result)
        print(f"walk: {result.outcome}, {len(replay.steps)} steps", flush=True)
        maps.trace.write_text(replay.model_dump_json(), encoding="utf-8")
    finally:
        source.close()


# ---- views -----------------------------------------------------------------------------------------------------------


def show_sites(page: Page, url: str, _: Maps) -> None:
    page.goto(url)
    expect(page.locator(".card img")).to_be_visible()


def show_map(page: Page, url: str, maps: Maps) -> None:
    page.goto(f"{url}#/sites/{maps.site}")
    expect(page.get_by_role("application")).to_be_visible()


def show_state(page: Page, url: str, maps: Maps) -> None:
    show_map(page, url, maps)
    page.get_by_label("Find a state").fill("/cart")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    state = page.get_by_role("region", name="State", exact=True)
    expect(state.locator(".box").first).to_be_visible()
    page.get_by_label("Find a state").evaluate(
        "(field) => { field.value = ''; field.dispatchEvent(new Event('input')); }"
    )
    state.get_by_role("link", name="Tide vase").first.hover()


def show_search(page: Page, url: str, maps: Maps) -> None:
    page.goto(f"{url}#/sites/{maps.site}/search")
    page.get_by_label("What do you look for?").fill(QUERY)
    page.keyboard.press("Enter")
    expect(page.locator(".hit img").first).to_be_visible()
    page.get_by_label("Path starts").select_option(label="at the start page")
    page.locator(".hit").first.click()
    expect(page.locator(".path li").first).to_be_visible()


def show_changes(page: Page, url: str, maps: Maps) -> None:
    page.goto(f"{url}#/sites/{maps.site}/changes")
    changes = page.get_by_role("region", name="Changes", exact=True)
    changes.get_by_role("link", name="Addresses").first.click()
    expect(page.locator(".pair img").nth(1)).to_be_visible()


def show_replay(page: Page, url: str, maps: Maps) -> None:
    page.goto(f"{url}#/replay")
    page.get_by_label("Trace file").set_input_files(maps.trace)
    step = page.get_by_role("region", name="Step", exact=True)
    expect(step).to_be_visible()
    page.locator(".replay-steps .step-bad button").first.click()


def show_report(page: Page, _: str, maps: Maps) -> None:
    file = maps.trace.with_name("report.html")
    file.write_text(site_report(Store.open(maps.store), maps.site).html(), encoding="utf-8")
    print(f"report: {file.stat().st_size / 2**20:.2f} MiB", flush=True)
    page.goto(file.as_uri())
    expect(page.get_by_role("application")).to_be_visible()


VIEWS: dict[str, Callable[[Page, str, Maps], None]] = {
    "sites": show_sites,
    "map": show_map,
    "state": show_state,
    "search": show_search,
    "changes": show_changes,
    "replay": show_replay,
    "report": show_report,
}
#: Pictures of the documentation: name, view, size and colours.
PICTURES: tuple[tuple[str, str, tuple[int, int], str], ...] = (
    ("ui-map", "state", WIDE, "light"),
    ("ui-search", "search", WIDE, "light"),
    ("ui-changes", "changes", WIDE, "light"),
    ("ui-replay", "replay", WIDE, "light"),
    ("ui-report", "report", WIDE, "light"),
    ("ui-dark", "map", WIDE, "dark"),
)


@contextmanager
def checked_page(browser: Browser, url: str, size: tuple[int, int], colours: str) -> Iterator[Page]:
    """Open a page; fail if something goes wrong in it."""
    problems: list[str] = []
    context = browser.new_context(viewport={"width": size[0], "height": size[1]}, color_scheme=colours)  # type: ignore[arg-type]
    context.on("weberror", lambda error: problems.append(str(error.error)))
    context.on("console", lambda message: problems.append(message.text) if "Content Security" in message.text else None)
    own = ("blob:", "data:", "file:", url)
    context.on("request", lambda request: None if request.url.startswith(own) else problems.append(request.url))
    yield context.new_page()
    context.close()
    if problems:
        raise SystemExit(f"the page has problems: {problems}")


def picture(page: Page) -> Image.Image:
    """Return a picture of the page when nothing in it moves."""
    expect(page.locator(".loading")).to_have_count(0)
    page.wait_for_timeout(900)  # the map moves to its place, images near the view are drawn
    return Image.open(io.BytesIO(page.screenshot())).convert("RGB")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--all", type=Path, metavar="DIR", help="write every view in both sizes and colours there")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="keep maps and trace there, and use them again")
    parser.add_argument("--only", metavar="VIEW", choices=sorted(VIEWS), help="this view only")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.keep or Path(temporary)
        maps = make_maps(folder)
        wanted = PICTURES
        if options.all is not None:
            options.all.mkdir(parents=True, exist_ok=True)
            wanted = tuple(
                (f"{view}-{size[0]}-{colours}", view, size, colours)
                for view in VIEWS
                for size in (WIDE, NARROW)
                for colours in ("light", "dark")
            )
        wanted = tuple(each for each in wanted if options.only in {None, each[1]})
        expect.set_options(timeout=60_000)  # the first search loads the encoder
        with service(maps.store) as url, sync_playwright() as driver:
            browser = driver.chromium.launch(executable_path=str(find_browser().path))
            for name, view, size, colours in wanted:
                with checked_page(browser, url, size, colours) as page:
                    VIEWS[view](page, url, maps)
                    file = options.all / f"{name}.png" if options.all else IMAGES / f"{name}.jpg"
                    picture(page).save(file, quality=85)
                    print(file, flush=True)
            browser.close()


if __name__ == "__main__":
    main()
