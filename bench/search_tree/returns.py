"""Returns to random states of a tree, each with checkpoints of a map and with URLs alone."""

from __future__ import annotations

import hashlib
import random
import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.search_tree.site import OpenSite
from waygraph.agents.actions import ClickAction
from waygraph.agents.search import (
    Judgement,
    ProposalRequest,
    Proposals,
    ProposedAction,
    SearchLimits,
    SearchOptions,
    SearchTree,
    TreeSearchAgent,
)
from waygraph.agents.search.backtrack import Backtracker
from waygraph.agents.search.lookahead import MapLookahead
from waygraph.agents.search.recorded_states import shows_state, step_to
from waygraph.agents.search.state_description import StateDescription
from waygraph.agents.search.tree_file import TreeFile
from waygraph.index.graph import Action

_TASK, _TREE_STEPS = "build a tree", 40


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
    """A state, whether it has an address of its own and the map knows it, and a return with the map and without."""

    node: int
    has_address: bool
    mapped: bool
    with_map: Return
    urls_alone: Return


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


async def grow_tree(site: OpenSite, file: Path) -> SearchTree:
    """Build a tree of visited states. The file must not exist."""
    options = SearchOptions(
        limits=SearchLimits(max_steps=_TREE_STEPS, max_depth=6),
        budget=30,
        branching=4,
        site=site.key,
        lookahead_states=0,
        tree_file=file,
    )
    async with site.session() as (session, _):
        await TreeSearchAgent(session, [RandomClicks(5)], RandomReward(), options, maps=site.maps).run(_TASK)
    tree = TreeFile(file).read(_TASK)
    assert tree is not None
    return tree


async def return_to(site: OpenSite, tree: SearchTree, node: int, *, with_map: bool) -> Return:
    """Return to a node in a new context, and look whether the page shows its state."""
    tree = tree.model_copy(deep=True)
    async with site.session() as (session, loads):
        await session.observe()
        began, loaded = time.perf_counter(), loads.count
        lookahead = MapLookahead(site.maps, site.key) if with_map else None
        record = await Backtracker(session, lookahead).go_back_to(tree, tree.nodes[node])
        seconds, count = round(time.perf_counter() - began, 2), loads.count - loaded
        snapshot = (await session.observe()).snapshot
        shown = record.arrived and shows_state(snapshot, step_to(tree, tree.nodes[node], Action(kind="goto")))
        return Return(shown, record.tried, count, seconds, record.problem)


async def measure_returns(site: OpenSite, file: Path, *, done: int, count: int) -> AsyncIterator[ReturnRow]:
    """Return to random states of a tree, with the map and without; which comes first alternates.

    Parameters
    ----------
    site
        The site.
    file
        File of the tree.
    done
        Number of returns that an earlier process measured.
    count
        Number of returns in all.

    Yields
    ------
    ReturnRow
        The returns that are left.
    """
    if done >= count:
        return
    tree = await grow_tree(site, file)
    # A click may have changed data, as the first look into a menu of news does. Earlier states count nevertheless:
    # whether they can be returned to is what is measured. Ways contain no action that changed data.
    tree.root = 0
    nodes = [
        each for each in tree.live_nodes() if each.same_as is None and not each.problem and each.parent is not None
    ]
    chance = random.Random(11 + done)
    for number in range(done, count if nodes else 0):
        node = chance.choice(nodes)
        arms = {}
        for with_map in (True, False) if number % 2 else (False, True):
            arms[with_map] = await return_to(site, tree, node.id, with_map=with_map)
        own = tree.nodes[node.parent or 0].state.url != node.state.url
        yield ReturnRow(node.id, own, bool(node.map_state), arms[True], arms[False])
