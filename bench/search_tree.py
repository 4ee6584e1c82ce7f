"""Benchmark of the tree search: find-a-page tasks with lookahead over a map and without a map, and returns to states.

    python -m bench.search_tree [--site NAME] [--states 100] [--limit 20] [--max-steps 10] [--backtracks 50] [--save]

Each site is served and mapped. Its tasks are the questions of `bench/retrieval/questions/` whose targets are addresses
alone, each begun on the start page by four agents without a language model, one after the other: the tree search with
lookahead and hits of the map, the tree search without a map, and the greedy agent with and without the map. A task
succeeds if the address of the page where the agent stopped is one of the targets.

For the returns, a search that values states at random builds a tree of visited states. Then states are drawn from it,
and a new browser context returns to each twice: over the map or a URL, and over URLs alone. A return has arrived if
the page then shows the recorded state. `--save` replaces the rows of these sites in bench/results/search-tree.json.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import json
import random
import statistics
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

from playwright.async_api import Browser, Page, Request

from bench.agents import questions_of
from bench.real_sites import Served
from bench.result_files import RESULTS, processor, run_info, write_result
from bench.retrieval.maps import BROWSER, SITES, Site
from bench.retrieval.queries import Query, Target
from bench.site_walks import agents_page
from waygraph import AsyncWaygraph
from waygraph.agents.actions import AgentSession, ClickAction, SessionOptions
from waygraph.agents.greedy import GreedyAgent, GreedyOptions
from waygraph.agents.run_record import Agent
from waygraph.agents.search import (
    CandidateGenerator,
    Judgement,
    MapHits,
    NearestElements,
    NearnessReward,
    ProposalRequest,
    Proposals,
    ProposedAction,
    SearchLimits,
    SearchOptions,
    SearchTree,
    TaskNearness,
    TreeSearchAgent,
)
from waygraph.agents.search.backtrack import Backtracker
from waygraph.agents.search.lookahead import MapLookahead
from waygraph.agents.search.recorded_states import shows_state, step_to
from waygraph.agents.search.state_description import StateDescription
from waygraph.core.settings import Settings
from waygraph.core.urls import site_key
from waygraph.index.graph import Action
from waygraph.index.store import Store
from waygraph.pipeline.browser.process.launch import launch
from waygraph.pipeline.encode.protocol import Encoder
from waygraph.pipeline.encode.registry import create_encoder
from waygraph.pipeline.explore.exploration import explore_site
from waygraph.pipeline.jobs.publishing.draft import encode_draft

RESULT = RESULTS / "search-tree.json"
AGENTS = ("search with lookahead", "search without map", "greedy with map", "greedy without map")
_TASK_SECONDS = 120.0
_RESAMPLES = 2_000
#: Every visited state is an answer without a model, so several are compared before one is accepted.
_SOLUTIONS = 5
Row = TypeVar("Row")


@dataclass(frozen=True)
class Outcome:
    """How an agent did a task: success, actions, documents that the browser requested, seconds."""

    success: bool
    steps: int
    loads: int
    seconds: float


@dataclass(frozen=True)
class TaskRow:
    """A task, and the outcome of each agent by its name."""

    ask: str
    by_agent: dict[str, Outcome]


@dataclass(frozen=True)
class Return:
    """A return to a state: whether the page showed it, the checkpoints that were tried, documents, seconds."""

    arrived: bool
    tried: list[str]
    loads: int
    seconds: float


@dataclass(frozen=True)
class ReturnRow:
    """A state, whether it has an address of its own and the map knows it, and a return with the map and without."""

    node: int
    has_address: bool
    mapped: bool
    with_map: Return
    urls_alone: Return


@dataclass
class Loads:
    """Counts the documents that a context's pages request."""

    count: int = 0

    def note(self, request: Request) -> None:
        """Count a request if it is for a document, of a page or of a frame in it."""
        self.count += request.is_navigation_request()


@dataclass
class Bench:
    """A served and mapped site with a browser."""

    served: Served
    key: str
    maps: AsyncWaygraph
    browser: Browser
    encoder: Encoder
    settings: Settings
    rows: list[TaskRow] = field(default_factory=list)

    @asynccontextmanager
    async def session(self) -> AsyncIterator[tuple[AgentSession, Loads]]:
        """Open the start page in a new context."""
        self.served.forget()
        page: Page = await agents_page(self.browser, self.served.storage_state)
        loads = Loads()
        page.context.on("request", loads.note)
        try:
            await page.goto(self.served.start)
            options = SessionOptions(browser=self.settings.browser, explore=self.settings.explore)
            async with AgentSession(page, options, maps=self.maps) as session:
                yield session, loads
        finally:
            await page.context.close()

    def agent(self, name: str, session: AgentSession, *, max_steps: int) -> Agent:
        """Create one of the agents that are compared."""
        if name.startswith("greedy"):
            site = self.key if name == "greedy with map" else ""
            return GreedyAgent(session, self.encoder, GreedyOptions(max_steps=max_steps, site=site))
        nearness = TaskNearness(self.encoder)
        is_mapped = name == "search with lookahead"
        options = SearchOptions(
            limits=SearchLimits(max_steps=max_steps, solutions=_SOLUTIONS),
            budget=20,
            branching=5,
            site=self.key if is_mapped else "",
        )
        generators: list[CandidateGenerator] = [NearestElements(nearness)]
        if is_mapped:
            generators.append(MapHits(self.maps, self.key))
        return TreeSearchAgent(
            session, generators, NearnessReward(nearness), options, maps=self.maps if is_mapped else None
        )


async def do_task(bench: Bench, query: Query, *, max_steps: int) -> TaskRow:
    """Let every agent do a task."""
    outcomes = {}
    for name in AGENTS:
        async with bench.session() as (session, loads):
            began, loaded = time.perf_counter(), loads.count
            try:
                async with asyncio.timeout(_TASK_SECONDS):
                    run = await bench.agent(name, session, max_steps=max_steps).run(query.ask)
                url, steps = run.url, len(run.steps)
            except TimeoutError:
                url, steps = "", max_steps
            seconds = round(time.perf_counter() - began, 2)
            success = any(Target.parse(text).is_at(url) for text in query.at) if url else False
            outcomes[name] = Outcome(success, steps, loads.count - loaded, seconds)
    return TaskRow(query.ask, outcomes)


class RandomClicks:
    """Proposes clicks on elements that are drawn at random, half of them on elements that are no links.

    Without that most states would have addresses of their own.
    """

    name = "random"

    def __init__(self, seed: int) -> None:
        self._chance = random.Random(seed)

    async def propose(self, request: ProposalRequest) -> Proposals:
        """Return candidate actions; see `CandidateGenerator`."""
        roles = {"link", "button", "tab", "menuitem", "treeitem"}
        found = [each for each in request.observation.elements if each.role in roles and each.name]
        links = [each for each in found if each.candidate.action.target]
        others = [each for each in found if not each.candidate.action.target]
        half = request.limit // 2
        drawn = [each for kind in (others, links) for each in self._chance.sample(kind, min(half, len(kind)))]
        return Proposals(tuple(ProposedAction(ClickAction(element=each.ref)) for each in drawn))


class RandomReward:
    """Values states and actions by hashes of their texts."""

    async def judge_states(self, task: str, states: Sequence[StateDescription]) -> Judgement:  # noqa: ARG002
        """Return values; see `Reward`."""
        return Judgement(tuple(_hashed(each.text) for each in states))

    async def judge_actions(self, task: str, state: StateDescription, actions: Sequence[str]) -> Judgement:  # noqa: ARG002
        """Return values; see `Reward`."""
        return Judgement(tuple(_hashed(state.text + each) for each in actions))


def _hashed(text: str) -> float:
    return int(hashlib.sha256(text.encode(errors="replace")).hexdigest()[:8], 16) / 0xFFFFFFFF


async def grow_tree(bench: Bench, scratch: Path, *, steps: int) -> SearchTree:
    """Build a tree of visited states."""
    file = scratch / f"tree-{bench.key.replace(':', '-')}.json"
    file.unlink(missing_ok=True)
    options = SearchOptions(
        limits=SearchLimits(max_steps=steps, max_depth=6),
        budget=30,
        branching=4,
        site=bench.key,
        lookahead_states=0,
        tree_file=file,
    )
    async with bench.session() as (session, _):
        agent = TreeSearchAgent(session, [RandomClicks(5)], RandomReward(), options, maps=bench.maps)
        await agent.run("build a tree")
    return SearchTree.model_validate_json(file.read_bytes())


async def return_to(bench: Bench, tree: SearchTree, node: int, *, with_map: bool) -> Return:
    """Return to a node in a new context, and look whether the page shows its state."""
    tree = tree.model_copy(deep=True)
    async with bench.session() as (session, loads):
        await session.observe()
        began, loaded = time.perf_counter(), loads.count
        lookahead = MapLookahead(bench.maps, bench.key) if with_map else None
        record = await Backtracker(session, lookahead).go_back_to(tree, tree.nodes[node])
        seconds, count = round(time.perf_counter() - began, 2), loads.count - loaded
        snapshot = (await session.observe()).snapshot
        expected = step_to(tree, tree.nodes[node], Action(kind="goto"))
        shown = record.arrived and shows_state(snapshot, expected)
        return Return(shown, record.tried, count, seconds)


async def measure_returns(bench: Bench, scratch: Path, *, count: int) -> list[ReturnRow]:
    """Return to random states of a tree, with the map and without; which comes first alternates."""
    tree = await grow_tree(bench, scratch, steps=40)
    nodes = [
        each for each in tree.live_nodes() if each.same_as is None and not each.problem and each.parent is not None
    ]
    chance = random.Random(11)
    rows = []
    for number in range(count if nodes else 0):
        node = chance.choice(nodes)
        arms = {}
        for with_map in (True, False) if number % 2 else (False, True):
            arms[with_map] = await return_to(bench, tree, node.id, with_map=with_map)
        parent = tree.nodes[node.parent or 0]
        own = parent.state.url != node.state.url
        rows.append(ReturnRow(node.id, own, bool(node.map_state), arms[True], arms[False]))
    return rows


async def measure_site(site: Site, served: Served, scratch: Path, encoder: Encoder, options: Any) -> dict[str, Any]:
    """Map a site, and measure tasks and returns on it."""
    settings = Settings(
        browser=BROWSER,
        explore={
            "depth": site.depth,
            "max_states": options.states,
            "robots": site.robots,
            "storage_state": served.storage_state,
        },
    )
    folder = scratch / f"maps-{site.name}"
    store = Store.open(str(folder), create=True)
    capture = await explore_site(served.start, settings=settings, blobs=store.blobs)
    store.publish(encode_draft(capture, settings, encoder))
    chosen = questions_of(site.name)
    chosen = random.Random(7).sample(chosen, options.limit) if len(chosen) > options.limit else chosen
    async with AsyncWaygraph(folder) as maps, launch(BROWSER) as browser:
        bench = Bench(served, site_key(served.start), maps, browser, encoder, settings)
        tasks = [await do_task(bench, query, max_steps=options.max_steps) for query in chosen]
        returns = await measure_returns(bench, scratch, count=options.backtracks)
    return {
        "states": len(capture.graph),
        "max_steps": options.max_steps,
        "tasks": task_summary(tasks),
        "returns": return_summary(returns),
        "task_rows": [asdict(row) for row in tasks],
        "return_rows": [asdict(row) for row in returns],
    }


def interval(rows: Sequence[Row], value: Callable[[Sequence[Row]], float]) -> list[float]:
    """Return the middle 95% of a statistic over rows that are drawn again with replacement."""
    if not rows:
        return []
    chance = random.Random(1)
    values = sorted(value(chance.choices(rows, k=len(rows))) for _ in range(_RESAMPLES))
    return [round(values[int(share * (_RESAMPLES - 1))], 3) for share in (0.025, 0.975)]


def task_summary(rows: Sequence[TaskRow]) -> dict[str, Any]:
    """Return the means of each agent, and the differences of the first one's successes to those of the others."""
    summary: dict[str, Any] = {"tasks": len(rows)}
    for name in AGENTS if rows else ():
        of = [row.by_agent[name] for row in rows]
        summary[name] = {
            "successes": sum(each.success for each in of),
            "mean_steps": round(statistics.mean(each.steps for each in of), 2),
            "mean_loads": round(statistics.mean(each.loads for each in of), 2),
            "median_seconds": round(statistics.median(each.seconds for each in of), 2),
        }
        if name != AGENTS[0]:
            difference = interval(rows, lambda drawn, name=name: success_difference(drawn, name))  # type: ignore[misc]
            summary[name]["first_minus_this"] = round(success_difference(rows, name), 3)
            summary[name]["first_minus_this_95"] = difference
    return summary


def success_difference(rows: Sequence[TaskRow], name: str) -> float:
    """Return the rate of success of the first agent minus that of another one."""
    return sum(row.by_agent[AGENTS[0]].success - row.by_agent[name].success for row in rows) / len(rows)


def return_summary(rows: Sequence[ReturnRow]) -> dict[str, Any]:
    """Return how many returns arrived, with the map and over URLs alone, and what they took."""

    def one(of: Sequence[Return]) -> dict[str, Any]:
        return {
            "arrived": sum(each.arrived for each in of),
            "mean_loads": round(statistics.mean(each.loads for each in of), 2),
            "median_seconds": round(statistics.median(each.seconds for each in of), 2),
        }

    summary: dict[str, Any] = {"returns": len(rows), "nodes": len({row.node for row in rows})}
    for name, part in {
        "all": rows,
        "without_address": [row for row in rows if not row.has_address],
        "unmapped": [row for row in rows if not row.mapped],
    }.items():
        if part:
            arms = {
                "with_map": one([row.with_map for row in part]),
                "urls_alone": one([row.urls_alone for row in part]),
            }
            summary[name] = {"returns": len(part), **arms}
    return summary


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--site", choices=sorted(SITES), action="append", help="these sites (default: shop)")
    parser.add_argument("--states", type=int, default=100, help="limit of each map")
    parser.add_argument("--limit", type=int, default=20, help="tasks per site")
    parser.add_argument("--max-steps", type=int, default=10)
    parser.add_argument("--backtracks", type=int, default=50, help="returns per site")
    parser.add_argument("--scratch", type=Path, help="folder for the sites, to keep them")
    parser.add_argument("--save", action="store_true", help="write bench/results/search-tree.json")
    options = parser.parse_args()
    encoder = create_encoder(Settings().encode)
    rows: dict[str, Any] = {}
    with TemporaryDirectory() as temporary:
        scratch = (options.scratch or Path(temporary)).absolute()
        scratch.mkdir(parents=True, exist_ok=True)
        for name in options.site or ["shop"]:
            with SITES[name].get(scratch) as served, TemporaryDirectory() as maps:
                found = asyncio.run(measure_site(SITES[name], served, Path(maps), encoder, options))
            rows[name] = {**run_info(), **processor(), "split": SITES[name].split, **found}
            print(name, json.dumps({"tasks": found["tasks"], "returns": found["returns"]}, indent=1), flush=True)
    if options.save:
        before = json.loads(RESULT.read_text(encoding="utf-8"))["sites"] if RESULT.exists() else {}
        write_result(RESULT, {"sites": {**before, **rows}})


if __name__ == "__main__":
    main()
