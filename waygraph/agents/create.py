"""Creation of agents by name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from waygraph.agents.loop.usage_meter import UsageMeter
from waygraph.core.errors import InvalidInput
from waygraph.core.settings import AgentSettings

if TYPE_CHECKING:
    from waygraph.agents.actions.navigation import PageSelector
    from waygraph.agents.actions.session import AgentSession
    from waygraph.agents.run_record import Agent
    from waygraph.pipeline.encode.protocol import Encoder


class AgentName(StrEnum):
    """Names of agents.

    `GREEDY`: the baseline without a model, `waygraph.agents.greedy`. `WEBNAVIGATOR`: `waygraph.agents.webnavigator`.
    `OCCAM`: `waygraph.agents.occam`.
    """

    GREEDY = "greedy"
    WEBNAVIGATOR = "webnavigator"
    OCCAM = "occam"

    @property
    def asks_model(self) -> bool:
        """Whether the agent needs a chat model."""
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
    """

    name: AgentName
    settings: AgentSettings
    encoder: Encoder
    meter: UsageMeter | None = None

    def page_selector(self) -> PageSelector | None:
        """Return what chooses among the pages that a map finds; None: the session's default."""
        if self.meter is None or not self.name.asks_model or self.settings.select == "first":
            return None
        from waygraph.agents.webnavigator import ModelPageSelector  # noqa: PLC0415 - agents differ in imports

        return ModelPageSelector(self.meter, images=self.settings.images)

    def agent(
        self, session: AgentSession, *, sites: Sequence[str] = (), has_home: bool = False, max_steps: int = 20
    ) -> Agent:
        """Create the agent for one task.

        Parameters
        ----------
        session
            The browser session that it acts in.
        sites
            Keys of the sites whose maps it may ask, that of the start page first; empty: no maps.
        has_home
            Whether the task is on several sites, so that returning to the first page is an action.
        max_steps
            Limit of actions.

        Returns
        -------
        Agent
            The agent.

        Raises
        ------
        InvalidInput
            If it needs a model and there is none.
        """
        if self.name is AgentName.GREEDY:
            from waygraph.agents.greedy import GreedyAgent, GreedyOptions  # noqa: PLC0415 - agents differ in imports

            site = sites[0] if sites else ""
            return GreedyAgent(session, self.encoder, GreedyOptions(max_steps=max_steps, site=site))
        if self.meter is None:
            raise InvalidInput(f"The agent {self.name} asks a model, and none is configured.", hint="--model NAME")
        from waygraph.agents.loop.agent import ModelAgent  # noqa: PLC0415
        from waygraph.agents.occam import OccamDecider  # noqa: PLC0415
        from waygraph.agents.webnavigator import WebNavigatorDecider  # noqa: PLC0415

        if self.name is AgentName.WEBNAVIGATOR:
            decider: WebNavigatorDecider | OccamDecider = WebNavigatorDecider(self.meter, sites)
        else:
            decider = OccamDecider(self.meter, sites, has_home=has_home, candidates=self.settings.candidates)
        return ModelAgent(session, decider, self.meter, max_steps=max_steps, images=self.settings.images)
