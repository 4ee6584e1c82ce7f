"""WebNavigator's decisions: a window of its latest steps, its notes, and rules against repetition."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from waygraph.agents.actions.sites import AgentSite, find_mapped_site, mapped_sites
from waygraph.agents.actions.types import ActionSyntaxError, NavigateAction, NoteAction
from waygraph.agents.loop.decision import DeciderOptions, Decision, Situation
from waygraph.agents.loop.prompt import note_list, step_messages
from waygraph.agents.loop.sites import site_actions
from waygraph.agents.models.chat import ChatModel
from waygraph.agents.models.structured import complete_as
from waygraph.agents.webnavigator.prompt import NAVIGATE_RULES, RememberedStep, history_text
from waygraph.agents.webnavigator.reply import WebNavigatorReply

if TYPE_CHECKING:
    from waygraph.agents.actions.report import ActionReport
    from waygraph.agents.actions.types import AgentAction
    from waygraph.agents.observation.page_observation import PageObservation

#: Steps that a prompt shows, unless a setting says otherwise.
HISTORY_STEPS = 5
_ACTIONS = frozenset({"click", "type", "show", "go_back", "note", "stop"})


class WebNavigatorDecider:
    """Decides as WebNavigator does (section 3.3, Appendix G).

    Parameters
    ----------
    model
        The model.
    sites
        The sites of the task. Without a map of any, the agent has no `navigate`.
    options
        Sampling, and the history that prompts show; None: the paper's.
    """

    def __init__(
        self, model: ChatModel, sites: Sequence[AgentSite] = (), *, options: DeciderOptions | None = None
    ) -> None:
        self._model = model
        self._sites = tuple(sites)
        self._options = options or DeciderOptions()
        self._history: list[RememberedStep] = []
        self._notes: list[str] = []
        self._mode = ""
        self._steps = 0
        self._navigated: set[tuple[str, str]] = set()

    def allowed(self, situation: Situation) -> Collection[str]:
        """Return the paper's actions, show, and those of the sites and tabs; see `Decider.allowed`."""
        return self._options.actions(_ACTIONS) | site_actions(self._sites, situation.observation)

    async def decide(self, situation: Situation) -> Decision:
        """Ask the model for the next action; see `Decider.decide`."""
        asked = step_messages(
            situation,
            rules=[NAVIGATE_RULES] if mapped_sites(self._sites) else [],
            allowed=self.allowed(situation),
            sites=self._sites,
            memory=[note_list(self._notes), history_text(self._options.latest(self._history, HISTORY_STEPS))],
        )
        reply, _ = await complete_as(self._model, self._options.request(asked), WebNavigatorReply)
        self._mode = reply.mode
        details = reply.model_dump(mode="json", exclude={"action", "reason"})
        return Decision(reply.action, reply.reason, details)

    def check(self, action: AgentAction) -> None:
        """Forbid the same `navigate` again, or in action mode, sites without a map, and repeated notes."""
        match action:
            case NavigateAction():
                site = find_mapped_site(action.site, self._sites)
                if self._mode == "action":
                    raise ActionSyntaxError("In action mode navigate is no action: act on this page, or explore.")
                if (site.key, action.query) in self._navigated:
                    raise ActionSyntaxError("You navigated with this query just now: act on the page, or use another.")
            case NoteAction() if action.text in self._notes:
                raise ActionSyntaxError("This note was written before: choose another action.")

    def page_action(self, action: AgentAction) -> AgentAction:
        """Return the action; see `Decider.page_action`."""
        return action

    def remember(
        self, decision: Decision, action: AgentAction, report: ActionReport, observation: PageObservation
    ) -> None:
        """Remember a step; see `Decider.remember`."""
        self._steps += 1
        if isinstance(action, NavigateAction):
            self._navigated.add((find_mapped_site(action.site, self._sites).key, action.query))
        else:
            self._navigated.clear()
        if isinstance(action, NoteAction):
            self._notes.append(action.text)
        self._history.append(
            RememberedStep(self._steps, observation.url, decision.action, decision.thinking, str(report))
        )
