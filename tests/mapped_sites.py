"""Sites with two versions of their map and the trace of a teleport, for flows through the page from end to end."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from bench.real_sites import gentelella
from tests.browsers import BROWSERS, LOOPBACK_ONLY
from tests.exploring import ExploredShop
from waygraph.cli.browser_page import new_mapped_page
from waygraph.core.replay_file import ReplayFile
from waygraph.core.settings import EncodeSettings, Settings
from waygraph.index.graph import InteractionGraph
from waygraph.index.store import Store
from waygraph.pipeline.encode.registry import create_encoder
from waygraph.pipeline.explore.exploration import explore_site
from waygraph.pipeline.jobs.publishing.draft import encode_draft
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


def map_shop(shop: ExploredShop, shop_store: Path, folder: Path) -> MappedSite:
    """Copy the map of the demo shop and publish a second version: one text is another one, one state is gone."""
    location = folder / "maps"
    shutil.copytree(shop_store, location)
    store = Store.open(str(location))
    site = shop.capture.site
    trace = _record_walk(str(location), site, "/returns")
    draft = encode_draft(shop.capture, Settings(), create_encoder(EncodeSettings()))
    graph, seen = draft.graph, dict(draft.observations)
    start = next(iter(graph.nodes))
    first, *others = seen[start].segments
    seen[start] = replace(seen[start], segments=(replace(first, text=NEW_TEXT), *others))
    gone = next(node.id for node in reversed(graph.nodes.values()) if not any(graph.edges_from(node.id)))
    del seen[gone]
    kept = InteractionGraph(
        (node for node in graph.nodes.values() if node.id != gone),
        (edge for edge in graph.edges if gone not in {edge.source, edge.target}),
    )
    store.publish(replace(draft, graph=kept, observations=seen, pages={key: draft.pages[key] for key in seen}))
    return MappedSite(
        str(location),
        site,
        "how do I send something back",
        "/returns",
        graph.nodes[start].title,
        trace.model_dump_json(),
    )


@contextmanager
def map_gentelella(folder: Path) -> Iterator[MappedSite]:
    """Map a dashboard template from npm, change a heading of its start page, and map it again."""
    with gentelella(folder) as served:
        location = str(folder / "maps")
        store = Store.open(location, create=True)
        settings = Settings(
            store=location, browser=LOOPBACK_ONLY, explore={"depth": 2, "max_states": 45, "order": "breadth"}
        )
        encoder = create_encoder(settings.encode)
        trace = None
        page = folder / "package" / "dist" / "production" / "index.html"
        for _ in range(2):
            capture = BROWSERS.run(_explore(served.start, settings, store))
            store.publish(encode_draft(capture, settings, encoder))
            if trace is None:
                trace = _record_walk(location, capture.site, "/calendar.html")
                text = page.read_text(encoding="utf-8")
                assert "</body>" in text
                page.write_text(text.replace("</body>", f"<h2>{NEW_TEXT}</h2></body>"), encoding="utf-8")
        title = next(iter(capture.graph.nodes.values())).title
        assert trace is not None
        yield MappedSite(
            location, capture.site, "calendar with events", "/calendar.html", title, trace.model_dump_json()
        )


async def _explore(url, settings, store):
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
