"""Conversion of the HTTP API's steps and states to the recorded steps that a replay works with."""

from __future__ import annotations

from waygraph.core.schemas import ActionModel, EvidenceModel, LeadModel, NodeAnswer, StepModel
from waygraph.index.graph import Action, Evidence, Lead, PathStep


def recorded_step(step: StepModel) -> PathStep:
    """Return the step of a path as it was recorded."""
    return PathStep(
        action=_action(step.action),
        expected_node_id=step.expected_node_id,
        expected_url=step.expected_url,
        cost_ms=step.cost_ms,
        inherited=step.inherited,
        openers=tuple(map(_action, step.openers)),
        opens_tab=step.opens_tab,
        accepts=tuple(step.accepts),
        evidence=_evidence(step.evidence) if step.evidence else None,
        change=step.change,
        lead=_lead(step, step.lead) if step.lead else None,
    )


def step_to_node(node: NodeAnswer) -> PathStep:
    """Return a step that loads a state's URL: it holds what the state shows, however it is reached."""
    return recorded_step(
        StepModel(
            action=ActionModel(kind="goto", url=node.url),
            expected_url=node.normalized_url or node.url,
            expected_node_id=node.node_id,
            cost_ms=0.0,
            accepts=node.aliases,
            evidence=node.evidence,
            lead=node.lead,
        )
    )


def _action(model: ActionModel) -> Action:
    return Action.from_json(model.model_dump())


def _lead(step: StepModel, model: LeadModel) -> Lead:
    return Lead(
        id=step.expected_node_id,
        url=step.expected_url,
        names=tuple(model.names),
        heading=model.heading,
        description=model.description,
        state=model.state,
        action=_action(step.action),
        depth=0,
        refusal=model.refusal,
        hidden=model.hidden,
    )


def _evidence(model: EvidenceModel) -> Evidence:
    return Evidence(
        shows=model.shows,
        hides=model.hides,
        features=tuple(model.features),
        elements=tuple(model.elements),
        own=tuple(model.own),
        alone=model.alone,
        named=model.named,
        urls=tuple(model.urls),
    )
