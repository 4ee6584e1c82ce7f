"""Find-a-page tasks, each done by four agents without a language model in the same number of steps."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from pathlib import Path

from bench.retrieval.queries import Query, Target
from bench.search_tree.site import OpenSite
from waygraph.agents.actions import AgentSession
from waygraph.agents.create import AgentName, AgentParts
from waygraph.agents.run_record import Agent
from waygraph.core.settings import AgentSettings

LOOKAHEAD, NO_MAP = "search with lookahead", "search without map"
AGENTS = (LOOKAHEAD, NO_MAP, "greedy with map", "greedy without map")
_TASK_SECONDS, _HITS = 180.0, 100


@dataclass(frozen=True)
class Outcome:
    """How an agent did a task.

    Attributes
    ----------
    success : whether the address of the page where it stopped is a target's.
    steps : number of its actions.
    loads : documents that the browser requested.
    seconds : time.
    end : why it stopped.
    url : where.
    """

    success: bool
    steps: int
    loads: int
    seconds: float
    end: str
    url: str


@dataclass(frozen=True)
class TaskRow:
    """A task.

    Attributes
    ----------
    ask : the question.
    by_agent : the outcome of each agent by its name.
    map_rank : place of the first target among the hits of the map's search, from 1 on; 0: it is none of 100 hits;
        None: it was not noted.
    """

    ask: str
    by_agent: dict[str, Outcome]
    map_rank: int | None = None


def agent_of(name: str, site: OpenSite, session: AgentSession, *, max_steps: int, tree_file: Path | None) -> Agent:
    """Create one of the agents that are compared, as `waygraph run` creates it."""
    kind = AgentName.GREEDY if name.startswith("greedy") else AgentName.SEARCH
    return AgentParts(kind, AgentSettings(), site.encoder).agent(
        session,
        maps=site.maps if session.options.sites else None,
        max_steps=max_steps,
        tree_file=tree_file,
    )


async def do_task(site: OpenSite, query: Query, number: int, *, max_steps: int, trees: Path) -> TaskRow:
    """Let every agent do a task; another one begins with each task. Trees of searches are kept in `trees`."""
    outcomes: dict[str, Outcome] = {}
    first = number % len(AGENTS)
    for name in (*AGENTS[first:], *AGENTS[:first]):
        tree_file = trees / f"{number}-{name.replace(' ', '-')}.json"
        tree_file.unlink(missing_ok=True)
        async with site.session(is_mapped=name in {LOOKAHEAD, "greedy with map"}) as (session, loads):
            began, loaded = time.perf_counter(), loads.count
            agent = agent_of(name, site, session, max_steps=max_steps, tree_file=tree_file)
            try:
                async with asyncio.timeout(_TASK_SECONDS):
                    run = await agent.run(query.ask)
                url, steps, end = run.url, len(run.steps), run.end.value
            except TimeoutError:
                url, steps, end = "", max_steps, "timeout"
            seconds = round(time.perf_counter() - began, 2)
            success = bool(url) and _is_target(query, url)
            shown = url.removeprefix(site.served.start.rstrip("/"))
            outcomes[name] = Outcome(success, steps, loads.count - loaded, seconds, end, shown)
    return TaskRow(query.ask, {name: outcomes[name] for name in AGENTS}, await map_rank(site, query))


async def map_rank(site: OpenSite, query: Query) -> int:
    """Return the place of the first target among the hits of the map's search; 0 if it is none of them."""
    found = await site.maps.search(site.key, query.ask, k=_HITS)
    return next((number for number, hit in enumerate(found.hits, start=1) if _is_target(query, hit.url)), 0)


def _is_target(query: Query, url: str) -> bool:
    return any(Target.parse(text).is_at(url) for text in query.at)
