"""Killed runs and different orders of workers give the same map. Without a browser."""

import asyncio
from collections import Counter
from contextlib import closing
from types import SimpleNamespace

import pytest

from tests.blobs import MemoryBlobs
from tests.sites.static_pages import BASE, look
from waygraph.core.settings import Settings
from waygraph.index.store.element_outcomes import read_element_outcomes
from waygraph.pipeline.browser.guard import RequestPolicy
from waygraph.pipeline.browser.session import Capture
from waygraph.pipeline.explore import crawl
from waygraph.pipeline.explore import explorer as module
from waygraph.pipeline.explore.checkpoint.journal import Journal
from waygraph.pipeline.explore.engine import order as order_module
from waygraph.pipeline.explore.explorer import Callbacks, Explorer, Resources
from waygraph.pipeline.explore.policies.hazard import HazardPolicy
from waygraph.pipeline.explore.policies.scope import Scope
from waygraph.pipeline.explore.politeness.pacer import Pacer
from waygraph.pipeline.explore.politeness.slots import Slots
from waygraph.pipeline.explore.records.outcome import ActionOutcome
from waygraph.pipeline.explore.records.state import Load
from waygraph.pipeline.explore.session.secrets import Redactor


def page(path):
    """Return a page with links to three others, of a structure of its own."""
    links = "".join(f"<a href='{path.rstrip('/')}/{word}'>{word}</a>" for word in ("some", "more", "less"))
    return look(f"<h1>{path}</h1>{'<p>text</p>' * len(path)}{links}", f"{BASE}{path}")


class Killed(Exception):
    """The process was killed."""


class Hands:
    """A worker that follows links without a browser, and is killed at a given item."""

    left = 10**6
    untouched_state = ""

    def __init__(self, context, pace, *, loads, **_):
        self.loads, self.save = loads, context.save_snapshot
        self.loader = SimpleNamespace(load=self.load, pace=pace)

    async def load(self, url, _=""):
        seen = self.show(url.removeprefix(BASE).partition("?")[0])

        async def take():
            return Capture(f"picture of {seen.title}".encode(), "", "")

        return Load(seen.id, 1.0, snapshot_key=await self.save(seen, take))

    def show(self, path):
        return page(path)

    def begin_chunk(self, _):
        pass

    async def close(self):
        pass

    async def perform(self, _, candidate, way):
        Hands.left -= 1
        if Hands.left < 0:
            raise Killed
        assert way is not None
        load = await self.loads.get(candidate.action.target, self.loader)
        return ActionOutcome(load.node_id, loaded=True, snapshot_key=load.snapshot_key)


class RacingHands(Hands):
    """The second click leads to one page that says where one came from; those of the first page take longest."""

    async def load(self, url, _=""):
        if "/some/" in url:
            await asyncio.sleep(0.05)
        return await super().load(url, _)

    def show(self, path):
        if path == "/":
            return page(path)
        middle, _, last = path.strip("/").partition("/")
        if not last:
            return page(path)
        return look(f"<title>{middle}</title><h1>From {middle}</h1><a href='/to/{middle}'>on</a>", f"{BASE}/shared")


class Robots:
    """Records which hosts were requested."""

    def __init__(self):
        self.read = []

    async def prefetch(self, urls):
        self.read += [BASE for _ in urls][:1]

    def to_checkpoint(self):
        return sorted({*self.read})

    async def load_checkpoint(self, memory):
        self.read += memory


async def explore(journal, robots=None, blobs=None, **settings):
    first, blobs = page("/"), MemoryBlobs() if blobs is None else blobs
    start = SimpleNamespace(
        url=f"{BASE}/?session=1",  # leads to another URL
        site=BASE.removeprefix("http://"),
        scope=Scope(BASE.removeprefix("http://")),
        policies=(),
        refuse_url=lambda _: None,
        site_policies=SimpleNamespace(hazards=HazardPolicy()),
        redactor=Redactor(),
        logged_in=False,
        robots=robots,
        boundary=SimpleNamespace(
            bytes_received=0, counters={}, proxy=SimpleNamespace(problem=None), request_policy=RequestPolicy()
        ),
        stopped=(),
        warnings=(),
        snapshots=(first, first),
        banners=(),
        session=None,
        user_agent="",
    )
    with closing(Journal.open(journal, {})) as notes:
        explorer = Explorer(
            start,
            Settings(explore={"depth": 3, "workers": 2, **settings}),
            Resources(SimpleNamespace(is_stale=False), Pacer(), Slots(), notes, blobs, Counter()),
            callbacks=Callbacks(),
        )
        return await explorer.run()


def shown(capture):
    report = capture.report
    return (
        [(node.url, node.depth, node.addressable) for node in capture.graph.nodes.values()],
        [(edge.source, edge.target, str(edge.action)) for edge in capture.graph.edges],
        (report.stopped_by, report.partial, report.pending, [(row.depth, row.states) for row in report.depths]),
        Counter((skip.reason, skip.element) for skip in report.skips),
    )


@pytest.mark.parametrize("order", ["novelty", "breadth"])
@pytest.mark.parametrize("limits", [{}, {"max_activations": 9}, {"max_states": 9}, {"max_states": 30, "depth": 5}])
@pytest.mark.parametrize("kills", [(1,), (5,), (8,), (2, 2, 2), (14, 6)])
async def test_killed_run_gives_the_map_of_an_uninterrupted_run(tmp_path, monkeypatch, order, limits, kills):
    limits = {**limits, "order": order}
    monkeypatch.setattr(module, "Worker", Hands)
    monkeypatch.setattr(crawl, "_COMMITS_PER_CHECKPOINT", 3)
    monkeypatch.setattr(order_module, "MIN_ROUND", 4)
    monkeypatch.setattr(Hands, "left", 10**6)
    whole = await explore(tmp_path / "whole", Robots(), **limits)
    for left in kills:
        Hands.left = left
        try:
            await explore(tmp_path / "killed", Robots(), **limits)
        except Killed:
            continue
    Hands.left = 10**6
    robots = Robots()
    assert shown(await explore(tmp_path / "killed", robots, **limits)) == shown(whole)
    assert robots.read


@pytest.mark.parametrize("workers", [1, 2, 3])
async def test_first_committed_content_of_equal_snapshots_is_kept(tmp_path, monkeypatch, workers):
    monkeypatch.setattr(module, "Worker", RacingHands)
    monkeypatch.setattr(Hands, "left", 10**6)
    capture = await explore(tmp_path / "journal", workers=workers)
    (shared,) = [node for node in capture.graph.nodes.values() if node.url == f"{BASE}/shared"]
    observation = capture.observations[shared.id]
    assert shared.title == observation.title == "some"
    assert [segment.text for segment in observation.segments][:1] == ["From some"]
    assert [e.action.target for e in capture.graph.edges if e.source == shared.id] == [f"{BASE}/to/some"]


class LinkedHands(Hands):
    """Three pages; the last two link to each other and to a page that is too deep."""

    def show(self, path):
        other = {"/some": "/more", "/more": "/some", "/less": "/some"}.get(path)
        if other is None:
            return page(path)
        return look(f"<h1>{path}</h1><a href='{other}'>{other}</a><a href='/deep{path}'>deep</a>", f"{BASE}{path}")


async def test_links_to_known_pages_are_edges_also_at_the_limit_of_depth(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "Worker", LinkedHands)
    monkeypatch.setattr(Hands, "left", 10**6)
    graph = (await explore(tmp_path / "journal", depth=1)).graph
    paths = {node.id: node.url.removeprefix(BASE) for node in graph.nodes.values()}
    unperformed = {(paths[edge.source], paths[edge.target]) for edge in graph.edges if edge.inherited}
    assert unperformed == {("/some", "/more"), ("/more", "/some"), ("/less", "/some")}


async def test_elements_that_a_limit_left_are_pending_with_their_targets(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "Worker", Hands)
    monkeypatch.setattr(Hands, "left", 10**6)
    monkeypatch.setattr(order_module, "MIN_ROUND", 4)
    blobs = MemoryBlobs()
    capture = await explore(tmp_path / "journal", blobs=blobs, depth=5, max_states=20)
    assert capture.report.stopped_by == "max_states"
    pending = [row for row in read_element_outcomes(blobs[capture.report.fates]) if row["status"] == "pending"]
    assert len(pending) == capture.report.pending > 0
    assert len({row["target"] for row in pending}) == len(pending)


async def test_depth_is_the_length_of_the_shortest_path_in_any_order(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "Worker", Hands)
    monkeypatch.setattr(Hands, "left", 10**6)
    monkeypatch.setattr(order_module, "MIN_ROUND", 2)
    graph = (await explore(tmp_path / "journal", depth=4, max_states=40)).graph
    (start,) = (node.id for node in graph.nodes.values() if node.depth == 0)
    depths, level, depth = {start: 0}, {start}, 0
    while level:
        depth += 1
        found = {e.target for e in graph.edges if e.source in level and not e.inherited} - depths.keys()
        depths.update(dict.fromkeys(found, depth))
        level = found
    assert {node.id: node.depth for node in graph.nodes.values()} == depths
