"""Is the map the same for a run that was killed, and whichever worker is first? Without a browser."""

import asyncio
from collections import Counter
from contextlib import closing
from types import SimpleNamespace

import pytest

from pipeline.browser.session import Capture
from pipeline.explore import explorer as module
from pipeline.explore.explorer import Explorer
from pipeline.explore.journal import Journal
from pipeline.explore.pacing import Pacer
from pipeline.explore.scope import Scope
from pipeline.explore.secrets import Redactor
from pipeline.explore.slots import Slots
from pipeline.explore.state import Load
from pipeline.explore.worker import Outcome
from tests.conftest import MemoryBlobs
from tests.sites.still import BASE, look
from waygraph.settings import Settings


def page(path):
    """Every page leads to three others and looks unlike them."""
    links = "".join(f"<a href='{path.rstrip('/')}/{word}'>{word}</a>" for word in ("some", "more", "less"))
    return look(f"<h1>{path}</h1>{'<p>text</p>' * len(path)}{links}", f"{BASE}{path}")


class Killed(Exception):
    """The process is no more."""


class Hands:
    """A worker that follows links of pages that need no browser, and is killed at some item."""

    left = 10**6

    def __init__(self, *_, loads, see, pace, **__):
        self.loads, self.see = loads, see
        self.loader = SimpleNamespace(load=self.load, pace=pace)

    async def load(self, url, _=""):
        seen = self.show(url.removeprefix(BASE).partition("?")[0])

        async def take():
            return Capture(f"picture of {seen.title}".encode(), "", "")

        return Load(seen.id, 1.0, look=await self.see(seen, take))

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
        return Outcome(load.node_id, loaded=True, look=load.look)


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
    """Remembers which hosts were asked."""

    def __init__(self):
        self.read = []

    async def prefetch(self, urls):
        self.read += [BASE for _ in urls][:1]

    def remember(self):
        return sorted({*self.read})

    async def recall(self, memory):
        self.read += memory


async def explore(journal, robots=None, **settings):
    first = page("/")
    start = SimpleNamespace(
        url=f"{BASE}/?session=1",  # leads to another URL
        site=BASE.removeprefix("http://"),
        scope=Scope(BASE.removeprefix("http://")),
        policies=(),
        redactor=Redactor(),
        logged_in=False,
        robots=robots,
        walls=SimpleNamespace(bytes_received=0, counters={}, proxy=SimpleNamespace(problem=None)),
        looks=(first, first),
        banners=(),
        session=None,
        user_agent="",
    )
    with closing(Journal.open(journal, {})) as notes:
        explorer = Explorer(
            SimpleNamespace(is_stale=False),
            start,
            pacer=Pacer(),
            slots=Slots(),
            journal=notes,
            settings=Settings(explore={"depth": 3, "workers": 2, **settings}),
            blobs=MemoryBlobs(),
            counters=Counter(),
            on_progress=lambda _: None,
            stop=asyncio.Event(),
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


@pytest.mark.parametrize("limits", [{}, {"max_activations": 9}, {"max_states": 9}])
@pytest.mark.parametrize("kills", [(1,), (5,), (8,), (2, 2, 2), (14, 6)])
async def test_a_killed_run_becomes_the_map_of_one_that_was_not(tmp_path, monkeypatch, limits, kills):
    monkeypatch.setattr(module, "Worker", Hands)
    monkeypatch.setattr(module, "_COMMITS_PER_CHECKPOINT", 3)
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
async def test_of_two_contents_with_one_structure_under_one_url_the_first_in_the_order_of_commits_counts(
    tmp_path, monkeypatch, workers
):
    monkeypatch.setattr(module, "Worker", RacingHands)
    monkeypatch.setattr(Hands, "left", 10**6)
    capture = await explore(tmp_path / "journal", workers=workers)
    (shared,) = [node for node in capture.graph.nodes.values() if node.url == f"{BASE}/shared"]
    observation = capture.observations[shared.id]
    assert shared.title == observation.title == "some"
    assert [segment.text for segment in observation.segments][:1] == ["From some"]
    assert [e.action.target for e in capture.graph.edges if e.source == shared.id] == [f"{BASE}/to/some"]
