"""Benchmark of teleports in other browser profiles than the one that made the map: arrivals, false arrivals, misses.

Each site is mapped in the capture profile; then a browser of each other profile is teleported to the states of the
map in a random order, every second time without loading URLs when there is such a way. After each teleport,
hand-written ground truth identifies the page by its URL and texts:

    python -m bench.foreign_profiles [--site NAME ...] [--profile NAME ...] [--teleports 100] [--save]

`false` counts reported arrivals at another page; `missed` counts targets that were reached and not reported as such.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from playwright.async_api import Browser

from bench.result_files import RESULTS, run_info, write_result
from tests.ground_truth.demo_shop import truth as shop_truth
from tests.sites.profiles import MEMBER, WHOLE, club, rail
from tests.sites.server import FixtureServer
from waygraph.core.errors import NoPath
from waygraph.core.settings import BrowserSettings, Settings
from waygraph.demo_site import DemoSite
from waygraph.index.graph import Observation
from waygraph.index.store import Store
from waygraph.pipeline.browser.page.snapshot import Snapshot, SnapshotOptions
from waygraph.pipeline.browser.page.view import PageView
from waygraph.pipeline.browser.process.launch import launch
from waygraph.pipeline.explore.exploration import explore_site
from waygraph.pipeline.explore.records.capture import SiteCapture
from waygraph.pipeline.jobs.publishing.draft import draft_from_capture
from waygraph.sdk.local import StoreMap
from waygraph.sdk.teleport import teleport
from waygraph.sdk.teleport_result import TeleportResult

SEED = 2026
BROWSER = BrowserSettings(extra_args=("--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",))
OUTCOMES = ("arrived", "arrived_equivalent", "arrived_elsewhere", "failed")

#: Returns the page with this path, title and texts by the ground truth; empty: none of the site's.
Judge = Callable[[str, str, str], str]


@dataclass(frozen=True)
class Profile:
    """A browser profile: its differences from the capture profile of the map."""

    options: Mapping[str, Any] = field(default_factory=dict)
    member: bool | None = None
    """Logged in or not; nothing: as the map's."""


#: 390 px wide, as telephones are.
PHONE = {"viewport": {"width": 390, "height": 844}, "device_scale_factor": 2, "is_mobile": True, "has_touch": True}
PROFILES = {
    "the map's": Profile(),
    "1920x1080": Profile({"viewport": {"width": 1920, "height": 1080}}),
    "390 px wide": Profile(PHONE),
    "German": Profile({"locale": "de-DE"}),
    "German, 390 px wide": Profile({**PHONE, "locale": "de-DE"}),
    "logged in": Profile(member=True),
    "logged in, 390 px wide": Profile(PHONE, member=True),
    "logged out": Profile(member=False),
    "logged out, 390 px wide": Profile(PHONE, member=False),
}


@dataclass(frozen=True)
class Site:
    """A site, whether it is mapped logged in, and which profiles make a difference to it."""

    serve: Callable[[], Any]
    judge: Judge
    member: bool
    profiles: tuple[str, ...]


def judge_shop(target: str, title: str, said: str) -> str:
    """Return the labels of the demo shop, written by hand."""
    keys = [
        key
        for key, state in shop_truth().states.items()
        if target == state.path
        and title == state.title
        and all(text in said for text in state.shows)
        and not any(text in said for text in state.hides)
    ]
    return keys[0] if len(keys) == 1 else ""


CLUB, RAIL = club(), rail()
SIZES = ("the map's", "1920x1080", "390 px wide")
SITES = {
    "demo shop": Site(DemoSite, judge_shop, member=False, profiles=SIZES),
    "club, mapped logged in": Site(
        lambda: FixtureServer(CLUB.pages),
        lambda target, _, said: CLUB.seen(target, said),
        member=True,
        profiles=(*SIZES, "logged out", "logged out, 390 px wide"),
    ),
    "club, mapped logged out": Site(
        lambda: FixtureServer(CLUB.pages),
        lambda target, _, said: CLUB.seen(target, said),
        member=False,
        profiles=("the map's", "logged in", "logged in, 390 px wide"),
    ),
    "rail, mapped in English": Site(
        lambda: FixtureServer(RAIL.pages),
        lambda target, _, said: RAIL.seen(target, said),
        member=False,
        profiles=(*SIZES, "German", "German, 390 px wide"),
    ),
}


@dataclass
class Row:
    """What became of the teleports of one profile on one site.

    Attributes
    ----------
    false : arrivals that a person would not call one.
    false_elsewhere : the state that it says to have ended on is another one than a person would say.
    missed : a person would call it an arrival.
    """

    site: str
    profile: str
    teleports: int = 0
    outcomes: dict[str, int] = field(default_factory=lambda: dict.fromkeys(OUTCOMES, 0))
    false: int = 0
    false_elsewhere: int = 0
    missed: int = 0
    details: list[str] = field(default_factory=list)

    def add(self, result: TeleportResult, target: str, seen: str, keys: Mapping[str, str]) -> None:
        """Count a teleport: `target` is the requested page, `seen` the page that is shown by the ground truth."""
        self.teleports += 1
        self.outcomes[result.outcome] += 1
        right = seen in {keys[target], WHOLE.get(keys[target])}
        self.false += result.arrived and not right
        self.missed += not result.arrived and right
        stated = keys.get(result.node_id or "", "")
        self.false_elsewhere += result.outcome == "arrived_elsewhere" and seen != stated
        if result.arrived != right or result.outcome == "failed":
            verdict = "FALSE" if result.arrived and not right else "missed" if right else "failed"
            self.details.append(f"{verdict}: wanted '{keys[target]}', saw '{seen}' at {result.url}: {result.problem}")


async def explore(site: Site, url: str, folder: str) -> tuple[SiteCapture, Settings]:
    """Map the site into `folder`."""
    explored: dict[str, Any] = {"depth": 3, "workers": 2, "robots": False}
    if site.member:
        state = Path(folder) / "state.json"
        state.write_text(json.dumps({"cookies": [_cookie()], "origins": []}), encoding="utf-8")
        explored["storage_state"] = state
    settings = Settings(browser=BROWSER, explore=explored)
    store = Store.open(f"{folder}/maps", create=True)
    capture = await explore_site(url, settings=settings, blobs=store.blobs)
    store.publish(draft_from_capture(capture, settings))
    return capture, settings


def _cookie() -> dict[str, Any]:
    name, value = MEMBER
    return {
        "name": name,
        "value": value,
        "domain": "127.0.0.1",
        "path": "/",
        "expires": -1,
        "httpOnly": False,
        "secure": False,
        "sameSite": "Lax",
    }


def _said(seen: Snapshot | Observation) -> str:
    return " | ".join([seen.title, *(segment.text for segment in seen.segments)])


def _path(url: str) -> str:
    parts = urlsplit(url)
    return parts.path + (f"?{parts.query}" if parts.query else "")


def keys_of(site: Site, capture: SiteCapture) -> dict[str, str]:
    """Map states to pages of the ground truth; omit states that the truth does not distinguish."""
    named = {
        node.id: site.judge(_path(node.url), node.title, _said(capture.observations[node.id]))
        for node in capture.graph.nodes.values()
    }
    return {node_id: key for node_id, key in named.items() if key}


async def walk(row: Row, site: Site, capture: SiteCapture, maps: StoreMap, browser: Browser, *, most: int) -> Row:
    """Teleport to states in a random order, from wherever the last one ended, and count in `row`."""
    keys = keys_of(site, capture)
    chance = random.Random(SEED)
    targets = sorted(keys, key=lambda node_id: (capture.graph.nodes[node_id].depth, node_id))
    chance.shuffle(targets)
    visitor = PROFILES[row.profile]
    context = await browser.new_context(
        **{"viewport": {"width": 1280, "height": 800}, "locale": "en-US", "reduced_motion": "reduce", **visitor.options}
    )
    if visitor.member or (visitor.member is None and site.member):
        await context.add_cookies([_cookie()])  # type: ignore[list-item] # a dict of that form
    page = await context.new_page()
    here: str | None = None
    for number, target in enumerate(targets[:most]):
        allow_goto = number % 2 == 0 or here is None or not _has_way(maps, capture.site, here, target)
        result = await teleport(page, maps, capture.site, target, allow_goto=allow_goto, report=False)
        view = PageView(result.page, SnapshotOptions.from_settings(BROWSER, Settings().explore), BROWSER, owned=False)
        seen = await view.observe()
        view.detach()
        row.add(result, target, site.judge(_path(result.page.url), seen.title, _said(seen)), keys)
        here = result.node_id
        if result.page is not page:
            await page.close()
            page = result.page
    await context.close()
    return row


def _has_way(maps: StoreMap, site: str, source: str, target: str) -> bool:
    try:
        maps.path(site, source, target, allow_goto=False)
    except NoPath:
        return False
    return True


async def measure(name: str, site: Site, url: str, profiles: Sequence[str], most: int) -> list[Row]:
    """Map a site and walk it in each profile."""
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        capture, _ = await explore(site, url, folder)
        with StoreMap(f"{folder}/maps") as maps:
            async with launch(BROWSER) as browser:
                for profile in profiles:
                    row = await walk(Row(name, profile), site, capture, maps, browser, most=most)
                    rows.append(row)
                    print(_line(row), flush=True)
                    for detail in row.details:
                        print(f"    {detail}")
    return rows


def _line(row: Row) -> str:
    counts = "".join(f"{row.outcomes[outcome]:>20}" for outcome in OUTCOMES)
    return f"{row.site:26}{row.profile:26}{row.teleports:5}{counts}{row.false:8}{row.missed:8}"


@contextmanager
def serving(site: Site) -> Iterator[str]:
    """Return the URL of the running site."""
    with site.serve() as server:
        yield server.url


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--site", nargs="*", choices=SITES, default=list(SITES))
    parser.add_argument("--profile", nargs="*", choices=PROFILES, default=list(PROFILES))
    parser.add_argument("--teleports", type=int, default=100, help="most teleports of each profile on each site")
    parser.add_argument("--save", action="store_true", help="write bench/results/foreign-profiles.json")
    options = parser.parse_args()
    heads = "".join(f"{outcome:>20}" for outcome in OUTCOMES)
    print(f"{'site':26}{'profile':26}{'n':>5}{heads}{'FALSE':>8}{'missed':>8}")
    rows = []
    for name in options.site:
        site = SITES[name]
        with serving(site) as url:
            wanted = [profile for profile in site.profiles if profile in options.profile]
            rows += asyncio.run(measure(name, site, url, wanted, options.teleports))
    if options.save:
        document = {
            **run_info(),
            "rows": [{**asdict(row), "details": [_placeless(detail) for detail in row.details]} for row in rows],
        }
        write_result(RESULTS / "foreign-profiles.json", document)


def _placeless(detail: str) -> str:
    """Remove the port, which differs in every run."""
    return detail.replace("http://127.0.0.1:", "http://site:")


if __name__ == "__main__":
    main()
