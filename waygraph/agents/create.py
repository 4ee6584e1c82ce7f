"""Creation of agents by name."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

from waygraph.agents.actions.sites import mapped_sites
from waygraph.agents.loop.usage_meter import UsageMeter
from waygraph.core.errors import InvalidInput
from waygraph.core.settings import AgentSettings

if TYPE_CHECKING:
    from waygraph.agents.actions.navigation import PageSelector
    from waygraph.agents.actions.session import AgentSession
    from waygraph.agents.models.chat import ChatModel
    from waygraph.agents.run_record import Agent
    from waygraph.pipeline.encode.protocol import Encoder
    from waygraph.sdk.facade import AsyncWaygraph


#: States of the map that a model judges around each visited state: each costs a call.
_JUDGED_BY_MODEL = 5
#: Answers that a search without a model wants before it accepts one: nearness to the task is a weak sign of the end.
_SOLUTIONS = 5


class AgentName(StrEnum):
    """Names of agents.

    `GREEDY`: the baseline without a model, `waygraph.agents.greedy`. `WEBNAVIGATOR`: `waygraph.agents.webnavigator`.
    `OCCAM`: `waygraph.agents.occam`. `MEMORY`: `waygraph.agents.memory`. `SEARCH`: the tree search,
    `waygraph.agents.search`, with a model if there is one.
    """

    GREEDY = "greedy"
    WEBNAVIGATOR = "webnavigator"
    OCCAM = "occam"
    MEMORY = "memory"
    SEARCH = "search"

    @property
    def needs_model(self) -> bool:
        """Whether the agent cannot work without a chat model."""
        return self in {AgentName.WEBNAVIGATOR, AgentName.OCCAM, AgentName.MEMORY}

    @property
    def takes_model(self) -> bool:
        """Whether the agent asks a chat model if there is one."""
        return self is not AgentName.GREEDY


@dataclass(frozen=True, slots=True)
class AgentParts:
    """What agents are made of.

    Attributes
    ----------
    name
        Which agent.
    settings
        Settings of agents.
    encoder
        Compares texts with the task.
    meter
        The chat model, which counts what a step takes; None: there is none.
    selector
        The chat model that chooses among the pages that a map finds; None: `meter`.
    """

    name: AgentName
    settings: AgentSettings
    encoder: Encoder
    meter: UsageMeter | None = None
    selector: ChatModel | None = None

    def page_selector(self, task: str = "") -> PageSelector | None:
        """Return what chooses among the pages that a map finds, for a task; None: the session's default."""
        if not self.name.takes_model or self.meter is None:
            return None
        if self.settings.select == "first":
            from waygraph.agents.actions.navigation import DefaultSelector  # noqa: PLC0415 - agents differ in imports

            return DefaultSelector("top1")
        from waygraph.agents.webnavigator import ModelPageSelector  # noqa: PLC0415 - agents differ in imports

        return ModelPageSelector(
            self.selector or self.meter,
            task,
            images=self.settings.images == "all",
            candidates=self.settings.candidates,
            always=self.settings.select == "model",
        )

    def agent(
        self,
        session: AgentSession,
        *,
        maps: AsyncWaygraph | None = None,
        max_steps: int = 20,
        tree_file: Path | None = None,
        tips: str = "",
    ) -> Agent:
        """Create the agent for one task.

        Parameters
        ----------
        session
            The browser session that it acts in, with the sites of the task.
        maps
            The maps of these sites; None: there are none.
        max_steps
            Limit of actions.
        tree_file
            File that keeps the tree of a search, from which an interrupted one goes on; None: none.
        tips
            What the prompts of agents that ask a model in a loop say about the task's sites; empty: nothing.

        Returns
        -------
        Agent
            The agent.

        Raises
        ------
        InvalidInput
            If it needs a model and there is none.
        """
        sites = session.options.sites
        mapped = [site.key for site in mapped_sites(sites)]
        if self.name is AgentName.GREEDY:
            from waygraph.agents.greedy import GreedyAgent, GreedyOptions  # noqa: PLC0415 - agents differ in imports

            return GreedyAgent(session, self.encoder, GreedyOptions(max_steps=max_steps, sites=mapped), maps=maps)
        if self.name is AgentName.SEARCH:
            return self._tree_search(session, tuple(mapped), maps, max_steps, tree_file)
        if self.meter is None:
            raise InvalidInput(f"The agent {self.name} asks a model, and none is configured.", hint="--model NAME")
        from waygraph.agents.loop.agent import ModelAgent  # noqa: PLC0415
        from waygraph.agents.loop.decision import Decider, DeciderOptions  # noqa: PLC0415
        from waygraph.agents.memory import MemoryDecider  # noqa: PLC0415
        from waygraph.agents.occam import OccamDecider  # noqa: PLC0415
        from waygraph.agents.webnavigator import WebNavigatorDecider  # noqa: PLC0415

        options = DeciderOptions.of(self.settings)
        decider: Decider
        if self.name is AgentName.WEBNAVIGATOR:
            decider = WebNavigatorDecider(self.meter, sites, options=options)
        elif self.name is AgentName.MEMORY:
            decider = MemoryDecider(self.meter, sites, options=options)
        else:
            decider = OccamDecider(self.meter, sites, options=options, judge=self.settings.occam_judge)
        return ModelAgent(
            session, decider, self.meter, max_steps=max_steps, images=self.settings.images == "all", tips=tips
        )

    def _tree_search(
        self,
        session: AgentSession,
        sites: tuple[str, ...],
        maps: AsyncWaygraph | None,
        max_steps: int,
        tree_file: Path | None,
    ) -> Agent:
        """Return the tree search: its contexts and its judge ask the model, or compare texts if there is none."""
        from waygraph.agents.search import (  # noqa: PLC0415
            VALUE_PER_SCORE,
            CandidateGenerator,
            ChecklistReward,
            MapHits,
            MapScores,
            NearestElements,
            NearnessReward,
            PageWindow,
            Reward,
            SearchLimits,
            SearchOptions,
            TaskNearness,
            TreeSearchAgent,
            chat_contexts,
        )

        generators: list[CandidateGenerator]
        reward: Reward
        wanted, is_mapped = self.settings.search, maps is not None and bool(sites)
        limits = SearchLimits(
            max_steps=max_steps, order=wanted.order, backtracking=wanted.backtracking, begin_anew=wanted.begin_anew
        )
        options = SearchOptions(
            sites=sites, tree_file=tree_file, merging=wanted.merging, speculation=wanted.speculation
        )
        if self.meter is not None:
            window = PageWindow(self.settings.model.context_tokens)
            generators = [*chat_contexts(self.meter, wanted, maps=maps, sites=sites, window=window)]
            reward = ChecklistReward(self.meter, logprobs=self.settings.model.logprobs, window=window)
            options = replace(
                options, limits=replace(limits, max_depth=wanted.depth), budget=wanted.budget,
                branching=wanted.branching, retries=wanted.retries, lookahead_states=_JUDGED_BY_MODEL,
            )  # fmt: skip
        else:
            nearness = TaskNearness(self.encoder)
            generators, reward = [NearestElements(nearness)], NearnessReward(nearness)
            solutions = _SOLUTIONS
            if maps is not None and is_mapped:
                # The states around were compared before they were visited.
                reward, solutions = MapScores(maps, sites, reward), 1
            options = replace(options, limits=replace(limits, solutions=solutions), budget=20, branching=5)
        if maps is not None and is_mapped:
            value_per_score = VALUE_PER_SCORE if self.meter is None else None
            generators.append(MapHits(maps, sites, value_per_score=value_per_score))
        return TreeSearchAgent(session, generators, reward, options, maps=maps)
