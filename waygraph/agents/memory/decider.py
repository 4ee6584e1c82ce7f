"""Decisions with an explicit memory (WebChoreArena, section 3.5: BrowserGym's agent with its memory switched on)."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Literal

from waygraph.agents.actions.sites import AgentSite, find_mapped_site
from waygraph.agents.actions.types import NavigateAction
from waygraph.agents.loop.decision import DeciderOptions, Decision, Situation
from waygraph.agents.loop.prompt import step_messages
from waygraph.agents.loop.sites import site_actions
from waygraph.agents.memory.reply import MemoryReply
from waygraph.agents.models.chat import ChatModel
from waygraph.agents.models.structured import complete_as

if TYPE_CHECKING:
    from waygraph.agents.actions.report import ActionReport
    from waygraph.agents.actions.types import AgentAction
    from waygraph.agents.observation.page_observation import PageObservation

#: Steps that a prompt shows, unless a setting says otherwise.
HISTORY_STEPS: Literal["all"] = "all"
#: BrowserGym's actions, without notes: the memory takes their place.
_ACTIONS = frozenset({
    "click", "type", "select", "hover", "press", "scroll", "goto", "go_back", "go_forward", "new_tab", "tab_focus",
    "close_tab", "show", "stop",
})  # fmt: skip
_RULES = """\
- You do not see earlier pages again. In each step write your whole memory anew: keep what is still needed, add what
  this page shows, and calculate there step by step. What you do not write down is forgotten."""


class MemoryDecider:
    """Decides with a memory that the model writes anew in each step.

    Parameters
    ----------
    model
        The model.
    sites
        The sites of the task. Without a map of any, the agent has no `navigate`.
    options
        Sampling, and the history that prompts show; None: the defaults.
    """

    def __init__(
        self, model: ChatModel, sites: Sequence[AgentSite] = (), *, options: DeciderOptions | None = None
    ) -> None:
        self._model = model
        self._sites = tuple(sites)
        self._options = options or DeciderOptions()
        self._steps: list[str] = []
        self._memory = ""

    def allowed(self, situation: Situation) -> Collection[str]:
        """Return BrowserGym's actions, and those of the sites; see `Decider.allowed`."""
        return self._options.actions(_ACTIONS) | site_actions(self._sites, situation.observation)

    async def decide(self, situation: Situation) -> Decision:
        """Ask the model for the next action; see `Decider.decide`."""
        shown = self._options.latest(self._steps, HISTORY_STEPS)
        asked = step_messages(
            situation,
            rules=[_RULES],
            allowed=self.allowed(situation),
            sites=self._sites,
            memory=[
                f"Your memory:\n{self._memory}" if self._memory else "",
                "\n".join(["Steps so far, oldest first:", *shown]) if shown else "",
            ],
        )
        reply, _ = await complete_as(self._model, self._options.request(asked), MemoryReply)
        return Decision(reply.action, reply.thinking, {"memory": reply.memory})

    def check(self, action: AgentAction) -> None:
        """Forbid sites without a map; see `Decider.check`."""
        if isinstance(action, NavigateAction):
            find_mapped_site(action.site, self._sites)

    def page_action(self, action: AgentAction) -> AgentAction:
        """Return the action; see `Decider.page_action`."""
        return action

    def remember(
        self,
        decision: Decision,
        action: AgentAction,  # noqa: ARG002 - of the protocol
        report: ActionReport,
        observation: PageObservation,
    ) -> None:
        """Remember a step, and the memory that was written with it; see `Decider.remember`."""
        self._memory = str(decision.details["memory"])
        self._steps.append(f"- on {observation.url}: {decision.action}\n  result: {report}")
