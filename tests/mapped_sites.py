"""Sites with two versions of their map and the trace of a teleport, for flows through the page from end to end."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import urlsplit

from bench.real_sites import gentelella
from tests.browsers import BROWSERS, LOOPBACK_ONLY
from waygraph.cli.browser_page import new_mapped_page
from waygraph.core.replay_file import ReplayFile
from waygraph.core.settings import Settings
from waygraph.index.graph import Segment
from waygraph.index.store import Store
from waygraph.pipeline.encode.registry import create_encoder
from waygraph.pipeline.explore.exploration import explore_site
from waygraph.pipeline.explore.records.capture import SiteCapture
from waygraph.pipeline.jobs.encoding.site_vectors import EncodedMap
from waygraph.pipeline.jobs.publishing.draft import draft_from_version, encode_draft
from waygraph.sdk.local import StoreMap
from waygraph.sdk.teleport import teleport
from waygraph.sdk.teleport_recorder import TeleportRecorder

#: A text that the second version shows in place of another.
NEW_TEXT = "Closed for the holidays until Monday"


@dataclass(frozen=True)
class MappedSite:
    """A site in a store.

    Attributes
    ----------
    store
        Location of the store.
    site
        Key of the site.
    query
        What an agent would look for.
    address
        Part of the URL of the state that the query should find.
    changed
        Title of the state that shows `NEW_TEXT` since the second version.
    trace
        A teleport to the state that the query should find, as JSON.
    """

    store: str
    site: str
    query: str
    address: str
    changed: str
    trace: str


def map_shop(site: str, shop_store: Path, folder: Path) -> MappedSite:
    """Copy the map of the demo shop, which runs, and publish a version with another text."""
    location = folder / "maps"
    shutil.copytree(shop_store, location)
    store = Store.open(str(location))
    trace = _record_walk(str(location), site, "/returns")
    version = store.read(site)
    start = next(iter(version.graph.nodes.values()))
    first, *others = version.observations[start.id].segments
    changed = replace(version.observations[start.id], segments=(Segment(NEW_TEXT, first.role, first.box), *others))
    vectors = EncodedMap(
        encoder=version.manifest.encoder,
        pages=version.pages,
        lead_pages=version.lead_pages,
        tool_pages=version.tool_pages,
    )
    draft = draft_from_version(version, Settings(), vectors)
    store.publish(replace(draft, observations={**draft.observations, start.id: changed}))
    return MappedSite(
        store=str(location),
        site=site,
        query="how do I send something back",
        address="/returns",
        changed=start.title,
        trace=trace.model_dump_json(),
    )


@contextmanager
def map_gentelella(folder: Path) -> Iterator[MappedSite]:
    """Map a dashboard template from npm, change a heading of its start page, and map it again."""
    with gentelella(folder) as served:
        location = str(folder / "maps")
        store = Store.open(location, create=True)
        settings = Settings(store=location, browser=LOOPBACK_ONLY, explore={"depth": 2, "max_states": 30})
        encoder = create_encoder(settings.encode)
        found: MappedSite | None = None
        page = folder / "gentelella" / "package" / "dist" / "production" / "index.html"
        for _ in range(2):
            capture = BROWSERS.run(_explore(served.start, settings, store))
            store.publish(encode_draft(capture, settings, encoder))
            if found is None:
                start, *others = capture.graph.nodes.values()
                titles = Counter(node.title for node in others)
                target = next(node for node in others if node.addressable and titles[node.title] == 1)
                address = urlsplit(target.url).path
                walk = _record_walk(location, capture.site, address)
                found = MappedSite(
                    store=location,
                    site=capture.site,
                    query=target.title,
                    address=address,
                    changed=start.title,
                    trace=walk.model_dump_json(),
                )
                text = page.read_text(encoding="utf-8")
                assert "</body>" in text
                page.write_text(text.replace("</body>", f"<h2>{NEW_TEXT}</h2></body>"), encoding="utf-8")
        assert found is not None
        yield found


async def _explore(url: str, settings: Settings, store: Store) -> SiteCapture:
    return await explore_site(url, settings=settings, blobs=store.blobs, pool=await BROWSERS.pool())


def _record_walk(location: str, site: str, address: str) -> ReplayFile:
    return BROWSERS.run(_walk(location, site, address))


async def _walk(location: str, site: str, address: str) -> ReplayFile:
    """Walk from the start page to the state with an address, by clicks alone, and record it."""
    settings = Settings(store=location, browser=LOOPBACK_ONLY)
    version = Store.open(location).read(site)
    target = next(node for node in version.graph.nodes.values() if address in node.url and node.addressable)
    source = StoreMap(location, settings)
    try:
        page = await new_mapped_page(await BROWSERS.browser(), source.site(site), settings)
        await page.goto(version.manifest.start_url)
        recorder = TeleportRecorder(source, site, target.id)
        await recorder.begin(page)
        result = await teleport(page, source, site, target.id, allow_goto=False, on_step=recorder.on_step, report=False)
        replay = await recorder.finish(result)
        await page.context.close()
        return replay
    finally:
        source.close()
