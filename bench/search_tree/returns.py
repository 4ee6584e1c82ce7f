"""Returns to random states of trees, each with checkpoints of a map and with URLs alone, as a search makes them."""

from __future__ import annotations

import hashlib
import random
import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.search_tree.site import Loads, OpenSite
from waygraph.agents.actions import AgentSession, ClickAction
from waygraph.agents.search import (
    JudgedAction,
    Judgement,
    ProposalRequest,
    Proposals,
    ProposedAction,
    SearchLimits,
    SearchOptions,
    SearchTree,
    Trajectory,
    TreeSearchAgent,
)
from waygraph.agents.search.backtrack import Backtracker
from waygraph.agents.search.checkpoints import is_reachable
from waygraph.agents.search.expected_state import ExpectedState
from waygraph.agents.search.lookahead import MapLookahead
from waygraph.agents.search.state_description import StateDescription
from waygraph.agents.search.tree import TreeNode
from waygraph.agents.search.tree_file import TreeFile
from waygraph.core.urls import is_part_of

_TASK, _TREE_STEPS, _FIRST_SEED = "build a tree", 40, 5
#: Factor of the actions that are proposed on the start page, which may be a list of links to pages without any.
_START_FACTOR = 3
#: Trees one after the other without a state that a search would return to, after which a site is given up.
_MAX_BARREN = 3


@dataclass(frozen=True)
class Return:
    """A return to a state.

    Attributes
    ----------
    arrived : whether the page then showed the recorded state.
    tried : the checkpoints that were tried.
    loads : documents that the browser requested.
    seconds : time.
    problem : why it did not arrive.
    """

    arrived: bool
    tried: list[str]
    loads: int
    seconds: float
    problem: str = ""


@dataclass(frozen=True)
class ReturnRow:
    """A state, and returns to it with the map and without.

    Attributes
    ----------
    seed : seed of the clicks that grew the tree.
    node : number of the state in the tree.
    has_address : whether its URL, with its fragment, is not that of the state before it.
    mapped : whether the map knows it.
    with_map, urls_alone : returns in the context of the search.
    fresh_with_map, fresh_urls_alone : returns in a new context of the browser; None: they were not measured.
    """

    seed: int
    node: int
    has_address: bool
    mapped: bool
    with_map: Return
    urls_alone: Return
    fresh_with_map: Return | None = None
    fresh_urls_alone: Return | None = None


@dataclass(frozen=True)
class TreeRow:
    """A tree, and what became of its states and of the returns while it grew.

    Attributes
    ----------
    seed : seed of the clicks that grew it.
    nodes : number of visited states that are no repetition and no dead end, without the first one.
    before_change : those of them from before the last action that changed data, to which a search does not return.
    without_way : those of the others to which no way leads.
    grown_returns, grown_arrived : returns that the search made itself while the tree grew, with the map's checkpoints.
    changes : the requests that changed data.
    """

    seed: int
    nodes: int
    before_change: int
    without_way: int
    grown_returns: int
    grown_arrived: int
    changes: list[str]


class RandomClicks:
    """Proposes clicks on elements that are drawn at random, half of them on elements that act in the page if any do.

    Without that most states would have addresses of their own.
    """

    name = "random"

    def __init__(self, seed: int) -> None:
        self._chance = random.Random(seed)

    async def propose(self, request: ProposalRequest) -> Proposals:
        """Return candidate actions; see `CandidateGenerator`."""
        roles = {"link", "button", "tab", "menuitem", "treeitem"}
        found = [each for each in request.observation.elements if each.role in roles]
        page = request.observation.snapshot.raw_url
        others = [
            each for each in found if not each.candidate.action.target or is_part_of(each.candidate.action.target, page)
        ]
        links = [each for each in found if each not in others]
        limit = _START_FACTOR * request.limit if request.is_start else request.limit
        half = [self._chance.sample(kind, min(limit // 2, len(kind))) for kind in (others, links)]
        drawn = [each for kind in half for each in kind]
        left = [each for each in found if each not in drawn]
        drawn += self._chance.sample(left, min(limit - len(drawn), len(left)))
        return Proposals(tuple(ProposedAction(ClickAction(element=each.ref)) for each in drawn))


class RandomReward:
    """Values states and actions by hashes of their texts."""

    judges_answers = False

    async def judge_states(self, trajectory: Trajectory, states: Sequence[StateDescription]) -> Judgement:  # noqa: ARG002
        """Return values; see `Reward`."""
        return Judgement(tuple(_hashed(each.text) for each in states))

    async def judge_actions(
        self,
        trajectory: Trajectory,  # noqa: ARG002
        state: StateDescription,
        actions: Sequence[JudgedAction],
    ) -> Judgement:
        """Return values; see `Reward`."""
        return Judgement(tuple(_hashed(state.text + each.text) for each in actions))


def _hashed(text: str) -> float:
    return int(hashlib.sha256(text.encode(errors="replace")).hexdigest()[:8], 16) / 0xFFFFFFFF


async def grow_tree(site: OpenSite, session: AgentSession, file: Path, seed: int) -> SearchTree:
    """Build a tree of visited states in a session. The file must not exist."""
    options = SearchOptions(
        limits=SearchLimits(max_steps=_TREE_STEPS, max_depth=6),
        budget=30,
        branching=4,
        sites=(site.key,),
        lookahead_states=0,
        tree_file=file,
    )
    await TreeSearchAgent(session, [RandomClicks(seed)], RandomReward(), options, maps=site.maps).run(_TASK)
    tree = TreeFile(file).read(_TASK)
    assert tree is not None
    return tree


def drawn_from(tree: SearchTree, seed: int) -> tuple[TreeRow, list[TreeNode]]:
    """Return the numbers of a tree, and the states that a search would return to."""
    visited = [each for each in tree.nodes if each.same_as is None and not each.problem and each.parent is not None]
    live = [each for each in visited if tree.is_live(each.id)]
    reachable = [each for each in live if is_reachable(tree, each.id, with_map=True)]
    row = TreeRow(
        seed=seed,
        nodes=len(visited),
        before_change=len(visited) - len(live),
        without_way=len(live) - len(reachable),
        grown_returns=len(tree.backtracks),
        grown_arrived=sum(each.arrived for each in tree.backtracks),
        changes=[text for each in tree.candidates for text in each.changed],
    )
    return row, reachable


async def return_to(
    site: OpenSite, session: AgentSession, loads: Loads, tree: SearchTree, node: int, *, with_map: bool
) -> Return:
    """Return to a node from what the session shows, and look whether the page shows its state."""
    tree = tree.model_copy(deep=True)  # both ways begin with the same knowledge of URLs that show something else
    began, loaded = time.perf_counter(), loads.count
    lookahead = MapLookahead(site.maps, [site.key]) if with_map else None
    record = await Backtracker(session, lookahead).go_back_to(tree, tree.nodes[node])
    seconds, count = round(time.perf_counter() - began, 2), loads.count - loaded
    snapshot = (await session.observe()).snapshot
    shown = record.arrived and ExpectedState(tree, tree.nodes[node]).is_shown(snapshot)
    return Return(shown, record.tried, count, seconds, record.problem)


async def measure_returns(
    site: OpenSite, folder: Path, *, done: int, count: int, per_tree: int, fresh: int
) -> AsyncIterator[TreeRow | ReturnRow]:
    """Grow trees, and return to random states of each in the context that it grew in, with the map and without.

    Which of the two comes first alternates. States are drawn from those that a search would return to: visited after
    the last change of data, and with a way back.

    Parameters
    ----------
    site
        The site.
    folder
        Folder of the trees.
    done
        Number of returns that earlier processes measured.
    count
        Number of returns in all.
    per_tree
        Number of returns after which the next tree is grown.
    fresh
        Number of returns that are also made in a new context.

    Yields
    ------
    TreeRow or ReturnRow
        The returns that are left, those of a tree after the tree.
    """
    barren = 0
    while done < count and barren < _MAX_BARREN:
        seed = _FIRST_SEED + done + barren
        file = folder / f"returns-{seed}.json"
        file.unlink(missing_ok=True)
        async with site.session() as (session, loads):
            tree = await grow_tree(site, session, file, seed)
            row, nodes = drawn_from(tree, seed)
            yield row
            barren = 0 if nodes else barren + 1
            chance = random.Random(seed)
            for _ in range(min(per_tree, count - done) if nodes else 0):
                node = chance.choice(nodes)
                arms: dict[tuple[bool, bool], Return] = {}
                for with_map in (True, False) if done % 2 else (False, True):
                    arms[False, with_map] = await return_to(site, session, loads, tree, node.id, with_map=with_map)
                    if done < fresh:
                        async with site.session() as (new, new_loads):
                            arms[True, with_map] = await return_to(
                                site, new, new_loads, tree, node.id, with_map=with_map
                            )
                own = tree.nodes[node.parent or 0].state.full_url != node.state.full_url
                yield ReturnRow(
                    seed, node.id, own, bool(node.map_state), arms[False, True], arms[False, False],
                    arms.get((True, True)), arms.get((True, False)),
                )  # fmt: skip
                done += 1
