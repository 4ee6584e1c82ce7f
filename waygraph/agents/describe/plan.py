"""Which pages of a map are described, which descriptions still hold, and what asking may cost."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from waygraph.agents.describe.prompt import SAMPLE_TITLES, TEXTS, lead_request, page_request
from waygraph.agents.models.chat import ChatRequest
from waygraph.core.settings import ChatSettings
from waygraph.index.graph import Description
from waygraph.index.graph.lead_order import kinds_first
from waygraph.index.store import MapVersion
from waygraph.pipeline.encode.text.descriptions import description_key, kept_descriptions
from waygraph.pipeline.encode.text.lead_text import lead_observations
from waygraph.pipeline.encode.text.site_text import SiteText
from waygraph.pipeline.encode.text_counts import count_segments
from waygraph.serve.views.alike import group_alike

#: Characters per token, for estimates: a usual value for English.
_CHARS_PER_TOKEN = 4
#: Tokens of the form of the reply, and of a usual reply.
_FORM_TOKENS, _REPLY_TOKENS = 180, 40 + 20 * TEXTS


class Per(StrEnum):
    """What gets a description of its own."""

    STATE = "state"
    KIND = "kind"


@dataclass(frozen=True, slots=True)
class Subject:
    """A page, or a kind of pages, to ask about.

    Attributes
    ----------
    keys
        What the description depends on (`description_key`), by the ids of the states or of the lead that it is for; the
        first one is shown to the model.
    request
        The request.
    kind
        URL pattern of the kind; empty: one state or lead.
    """

    keys: Mapping[str, str]
    request: ChatRequest
    kind: str = ""

    @property
    def states(self) -> tuple[str, ...]:
        """Ids of the states or of the lead that the description is for."""
        return tuple(self.keys)

    @property
    def digest(self) -> str:
        """Hash (hex) of everything that the model is told."""
        texts = [message.text for message in self.request.messages]
        return hashlib.sha256(json.dumps(texts).encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class DescriptionPlan:
    """What to ask about a map.

    Attributes
    ----------
    subjects
        Pages and kinds without a description that holds.
    kept
        Descriptions that hold, by node id, those included that are asked for again.
    states
        Number of states and leads that can be described.
    """

    subjects: tuple[Subject, ...]
    kept: Mapping[str, Description]
    states: int


@dataclass(frozen=True, slots=True)
class Estimate:
    """What asking may take.

    Attributes
    ----------
    calls
        Number of calls; replies in a wrong form are asked for once more.
    input_tokens
        Tokens of the requests, by a quarter of their characters.
    output_tokens
        Tokens of usual replies.
    cost
        Price; None if the model has no prices.
    """

    calls: int
    input_tokens: int
    output_tokens: int
    cost: float | None


def plan_descriptions(
    version: MapVersion, per: Per, *, again: bool = False, leads: int | None = None
) -> DescriptionPlan:
    """Decide what to ask about a map.

    Parameters
    ----------
    version
        The map. States without an observation are not described.
    per
        Whether each state gets a description, or each kind of alike pages (and each other state) one. Descriptions of
        kinds do not count for the former.
    again
        Ask about everything, also where a description holds.
    leads
        Number of leads that are described, kinds first; None: as many as there are states.

    Returns
    -------
    DescriptionPlan
        States in the order of the map, then leads, so that a repeated call asks the same.
    """
    seen = version.observations
    site = SiteText.from_counts(count_segments(seen.values()))
    chosen = kinds_first(version.leads.values())[: len(seen) if leads is None else leads]
    unvisited = {each.node_id: each for each in lead_observations(chosen, seen.values())}
    holding = kept_descriptions(version.descriptions, {**seen, **unvisited})
    kept = {} if again else {node_id: each for node_id, each in holding.items() if per is Per.KIND or not each.kind}
    groups: dict[str, tuple[str, list[str]]] = {}
    if per is Per.KIND:
        nodes = (node for node in version.graph.nodes.values() if node.id in seen)
        groups = {ids[0]: (pattern, ids) for pattern, ids in group_alike(nodes)}
    grouped = {node_id for _, ids in groups.values() for node_id in ids}
    subjects = []
    for node_id in version.graph.nodes:
        if node_id not in seen or (node_id in grouped and node_id not in groups):
            continue
        kind, states = groups.get(node_id, ("", [node_id]))
        if kind and (known := _of_kind(kept, states, kind)) is not None:
            # A page that was added to the kind gets what is known of it.
            kept |= {each: _for_state(known, version, each) for each in states if each not in kept}
        if missing := [each for each in states if each not in kept]:
            others = [seen[each] for each in states if each != missing[0]][:SAMPLE_TITLES]
            request = page_request(seen[missing[0]], site, kind=kind, pages=len(states), others=others)
            subjects.append(Subject({each: description_key(seen[each]) for each in missing}, request, kind))
    for lead in chosen:
        if lead.id not in kept:
            link = unvisited[lead.id]
            request = lead_request(lead, link, version.observations.get(lead.state), site)
            subjects.append(Subject({lead.id: description_key(link)}, request))
    return DescriptionPlan(tuple(subjects), holding | kept, len(seen) + len(chosen))


def _of_kind(kept: Mapping[str, Description], states: Iterable[str], kind: str) -> Description | None:
    return next((kept[each] for each in states if each in kept and kept[each].kind == kind), None)


def _for_state(description: Description, version: MapVersion, node_id: str) -> Description:
    key = description_key(version.observations[node_id])
    return Description(description.sentence, description.questions, description.model, key, description.kind)


def estimate(plan: DescriptionPlan, settings: ChatSettings) -> Estimate:
    """Estimate what asking takes.

    Parameters
    ----------
    plan
        What to ask.
    settings
        Prices of the model.

    Returns
    -------
    Estimate
        An estimate by characters; a tokenizer may count a third more or less.
    """
    chars = sum(len(message.text) for subject in plan.subjects for message in subject.request.messages)
    calls = len(plan.subjects)
    tokens = chars // _CHARS_PER_TOKEN + calls * _FORM_TOKENS, calls * _REPLY_TOKENS
    return Estimate(calls, *tokens, settings.cost_of(*tokens))
