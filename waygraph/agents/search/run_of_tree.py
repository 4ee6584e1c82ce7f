"""A search as the record of a run: its steps, and how it ended."""

from __future__ import annotations

from pydantic import JsonValue

from waygraph.agents.observation.page_observation import PageObservation
from waygraph.agents.run_record import AgentRun, AgentStep, AttemptEnd
from waygraph.agents.search.tree import SearchTree, StepRecord


def step_of(step: StepRecord) -> AgentStep:
    """Return a step as runs record it."""
    details: dict[str, JsonValue] = step.details
    return AgentStep(step.state, step.url, step.action, step.status, step.message, step.thinking, step.usage, details)


def run_of(tree: SearchTree, shown: PageObservation) -> AgentRun:
    """Return a search as a run that ended on a page."""
    chosen = tree.chosen
    answer = chosen.action.answer if chosen is not None and chosen.action.action == "stop" else ""
    steps = tuple(step_of(step) for step in tree.log)
    end = tree.end or AttemptEnd.FAILED
    return AgentRun(tree.task, end, answer, shown.url, shown.snapshot.id, steps, tree.problem)
