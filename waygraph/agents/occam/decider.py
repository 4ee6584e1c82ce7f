"""AgentOccam's decisions: plans, the history of the active one, notes, and rules against repetition."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from waygraph.agents.actions.brackets import parse_brackets
from waygraph.agents.actions.sites import AgentSite, find_mapped_site, mapped_sites
from waygraph.agents.actions.types import (
    ActionSyntaxError,
    BranchAction,
    GotoAction,
    NavigateAction,
    NoteAction,
    PruneAction,
)
from waygraph.agents.loop.decision import DeciderOptions, Decision, Situation, available
from waygraph.agents.loop.prompt import note_list, step_messages
from waygraph.agents.loop.sites import site_actions
from waygraph.agents.models.chat import ChatModel
from waygraph.agents.models.structured import complete_as
from waygraph.agents.occam.judge import choose
from waygraph.agents.occam.pivotal import pivotal_text
from waygraph.agents.occam.plan import NoSuchPlan, PlanTree
from waygraph.agents.occam.prompt import NAVIGATE_RULES, PLAN_RULES, PlannedStep, history_text
from waygraph.agents.occam.reply import OccamCandidate, OccamProposals, OccamReply

if TYPE_CHECKING:
    from pydantic import JsonValue

    from waygraph.agents.actions.report import ActionReport
    from waygraph.agents.actions.types import AgentAction
    from waygraph.agents.observation.page_observation import PageObservation

#: Steps that a prompt shows, unless a setting says otherwise.
HISTORY_STEPS = 3
_ACTIONS = frozenset({"click", "type", "show", "note", "stop", "go_back"})
_PLANNING = frozenset({"branch", "prune"})


class OccamDecider:
    """Decides as AgentOccam does.

    Parameters
    ----------
    model
        The model.
    sites
        The sites of the task. Without a map of any, the agent has no `navigate`.
    options
        Sampling, and what is switched off for comparisons.
    judge
        Whether the model proposes all suitable actions, and a second call judges them.
    """

    def __init__(
        self,
        model: ChatModel,
        sites: Sequence[AgentSite] = (),
        *,
        options: DeciderOptions | None = None,
        judge: bool = False,
    ) -> None:
        self._model = model
        self._sites = tuple(sites)
        self._options = options or DeciderOptions()
        self._judge = judge
        self._plans: PlanTree | None = None
        self._history: list[PlannedStep] = []
        self._notes: list[str] = []

    def allowed(self, situation: Situation) -> Collection[str]:
        """Return the paper's actions, show, and those of the sites and tabs; see `Decider.allowed`."""
        planning = _PLANNING if self._options.planning else frozenset()
        return self._options.actions(_ACTIONS) | planning | site_actions(self._sites, situation.observation)

    async def decide(self, situation: Situation) -> Decision:
        """Ask the model for the next action; see `Decider.decide`."""
        if self._plans is None:
            self._plans = PlanTree(situation.task, situation.observation.url)
        plan = str(self._plans)
        steps = [step for step in self._history if step.plan == self._plans.active]
        shown = self._options.latest(steps, HISTORY_STEPS)
        memory = [
            f"Plans:\n{plan}" if self._options.planning else "",
            note_list(self._notes),
            history_text(shown, situation.observation.snapshot.id),
        ]
        asked = step_messages(
            situation,
            rules=[
                *([PLAN_RULES] if self._options.planning else []),
                *([NAVIGATE_RULES] if mapped_sites(self._sites) else []),
            ],
            allowed=self.allowed(situation),
            sites=self._sites,
            memory=memory,
        )
        request = self._options.request(asked)
        more: dict[str, JsonValue] = {"plan": self._plans.active, "plans": plan}
        if not self._judge:
            reply, _ = await complete_as(self._model, request, OccamReply)
            details = reply.model_dump(mode="json", exclude={"action", "reason"})
            return Decision(reply.action, reply.reason, {**details, **more})
        proposals, _ = await complete_as(self._model, request, OccamProposals)
        chosen, verdict = await choose(self._model, situation, memory, self._usable(proposals.actions, situation))
        details = proposals.model_dump(mode="json")
        judged = verdict.model_dump(mode="json") if verdict is not None else None
        return Decision(chosen.action, chosen.reason, {**details, **more, "verdict": judged})

    def _usable(self, proposed: Sequence[OccamCandidate], situation: Situation) -> Sequence[OccamCandidate]:
        """Return the actions that can be read and that no rule forbids; all if there is none, to say why."""
        usable = []
        for each in proposed:
            try:
                self.check(parse_brackets(each.action, available(self.allowed(situation), situation.observation)))
            except ActionSyntaxError:
                continue
            usable.append(each)
        return usable or proposed

    def check(self, action: AgentAction) -> None:
        """Forbid plans that do not exist, sites without a map, and repeated notes; see `Decider.check`."""
        match action:
            case BranchAction() | PruneAction() if self._plans is not None:
                try:
                    self._plans.find(action.plan)
                except NoSuchPlan:
                    ids = ", ".join(map(str, self._plans.ids()))
                    raise ActionSyntaxError(f"There is no plan {action.plan}; the plans are {ids}.") from None
            case NavigateAction():
                find_mapped_site(action.site, self._sites)
            case NoteAction() if action.text in self._notes:
                raise ActionSyntaxError("This note was written before: choose another action.")

    def page_action(self, action: AgentAction) -> AgentAction:
        """Return the action; for `prune` the return to the page of the resumed plan; see `Decider.page_action`."""
        if isinstance(action, PruneAction) and self._plans is not None:
            url = self._plans.find(action.plan).url
            if url.startswith(("http:", "https:")):  # a plan may be made in an empty tab
                return GotoAction(url=url)
        return action

    def remember(
        self, decision: Decision, action: AgentAction, report: ActionReport, observation: PageObservation
    ) -> None:
        """Remember a step, under the plan that was active; see `Decider.remember`."""
        if self._plans is None:
            return
        highlighted = decision.details["observation_highlight"]
        refs = [str(ref).strip("[]") for ref in highlighted] if isinstance(highlighted, list) else []
        page = pivotal_text(observation.shown, refs) or str(decision.details["observation_description"])
        step = PlannedStep(
            self._plans.active, observation.snapshot.id, page, decision.action, decision.thinking, str(report)
        )
        match action:
            case BranchAction():
                self._plans.branch(action.plan, action.intent, observation.url)
            case PruneAction():
                self._plans.prune(action.plan, action.reason)
                self._notes.clear()
            case NoteAction():
                self._notes.append(action.text)
                self._history.append(step)
            case _:
                self._history.append(step)
