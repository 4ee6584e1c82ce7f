"""Creation of agents by name."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from waygraph.agents.actions.session import AgentSession
    from waygraph.agents.run_record import Agent
    from waygraph.pipeline.encode.protocol import Encoder


class AgentName(StrEnum):
    """Names of agents.

    `GREEDY`: the baseline without a model, `waygraph.agents.greedy`.
    """

    GREEDY = "greedy"


def create_agent(name: AgentName, session: AgentSession, *, encoder: Encoder, site: str, max_steps: int) -> Agent:
    """Create an agent for one task.

    Parameters
    ----------
    name
        Which agent.
    session
        The browser session that it acts in.
    encoder
        Compares texts with the task.
    site
        Key of the site whose map is asked; empty: no map.
    max_steps
        Limit of actions.

    Returns
    -------
    Agent
        The agent.
    """
    match name:
        case AgentName.GREEDY:
            from waygraph.agents.greedy import GreedyAgent, GreedyOptions  # noqa: PLC0415 - agents differ in imports

            return GreedyAgent(session, encoder, GreedyOptions(max_steps=max_steps, site=site))
