"""Anchor text of states: the names of elements that lead to a state, and the words beside them.

A table of contents says "csv: write and read tabular data" where the page itself says "class csv.Dialect". An
administration menu explains what its pages only do. Anchor text comes from the source states, so a query can match a
state by words that the state does not show (Craswell, Hawking and Robertson, SIGIR 2001, for web links).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import islice

from waygraph.core.text import shortened
from waygraph.index.graph import HIDDEN_ROLE, InteractionGraph, Observation
from waygraph.pipeline.encode.text.composites import ACTION_ROLES, COLUMN_ROLES, FIELD_ROLES, has_words
from waygraph.pipeline.encode.text.own_text import MAX_NAME_CHARS
from waygraph.pipeline.encode.text_counts import clean

MAX_NAMES = 6
#: A name that leads to more than this share of the states, and to more than this many, describes none ("Edit").
COMMON_SHARE = 0.1
COMMON_STATES = 5
#: Number of words beside a name that belong to its anchor text, and of segments that they are taken from.
BESIDE_WORDS = 20
BESIDE_SEGMENTS = 4
#: Roles that end the words beside a name.
_END_OF_DESCRIPTION = ACTION_ROLES | FIELD_ROLES | COLUMN_ROLES | {"heading", HIDDEN_ROLE}


def with_anchor_texts(graph: InteractionGraph, observations: Iterable[Observation]) -> list[Observation]:
    """Return the observations in order, each with its anchor texts.

    Names come from every edge that leads to a state from another state, inherited edges included, the rarest first. The
    result depends only on graph and observations, not on their order. Words beside names come from `observations`.
    """
    all_observations = list(observations)
    sources = _sources(graph)
    targets = Counter(name for names in sources.values() for name in names)
    max_targets = max(COMMON_STATES, COMMON_SHARE * len(graph))
    names_by_source: dict[str, set[str]] = defaultdict(set)
    chosen: dict[str, list[str]] = {}
    for observation in all_observations:
        names = sources.get(observation.node_id, {})
        rare = [name for name in names if targets[name] <= max_targets]
        rare.sort(key=lambda name: (targets[name], -sum(names[name].values()), name))
        distinct = {name.casefold(): name for name in reversed(rare)}
        chosen[observation.node_id] = [name for name in rare if distinct[name.casefold()] == name][:MAX_NAMES]
        for name in chosen[observation.node_id]:
            for source in names[name]:
                names_by_source[source].add(name)
    beside = {
        observation.node_id: _beside(observation, names_by_source[observation.node_id])
        for observation in all_observations
        if observation.node_id in names_by_source
    }
    return [
        replace(
            observation,
            anchor_texts=tuple(
                _explained(name, sources[observation.node_id][name], beside) for name in chosen[observation.node_id]
            ),
        )
        for observation in all_observations
    ]


def anchored_observations(graph: InteractionGraph, observations: Iterable[Observation]) -> dict[str, Observation]:
    """Return the observations of `with_anchor_texts` by node id."""
    return {observation.node_id: observation for observation in with_anchor_texts(graph, observations)}


def _sources(graph: InteractionGraph) -> dict[str, dict[str, Counter[str]]]:
    """Return for each target state its names, and for each name the number of edges by source state."""
    found: dict[str, dict[str, Counter[str]]] = defaultdict(lambda: defaultdict(Counter))
    for edge in graph.edges:
        name = shortened(clean(edge.action.name), MAX_NAME_CHARS)
        # The names of edges through menus are those of the edges from the open menu.
        if edge.source != edge.target and edge.action.kind != "goto" and not edge.openers and has_words(name):
            found[edge.target][name][edge.source] += 1
    return found


def _beside(observation: Observation, names: set[str]) -> dict[str, str]:
    """Return the words behind the first occurrence of each name in a state."""
    pieces = [(clean(segment.text), segment.role) for segment in observation.segments]
    found: dict[str, str] = {}
    for index, (text, _) in enumerate(pieces):
        name = shortened(text, MAX_NAME_CHARS)
        if name in names and name not in found:
            found[name] = _following(text, pieces[index + 1 : index + 1 + BESIDE_SEGMENTS])
    return found


def _following(name: str, pieces: Sequence[tuple[str, str]]) -> str:
    words: list[str] = []
    for text, role in pieces:
        if role in _END_OF_DESCRIPTION or len(words) >= BESIDE_WORDS:
            break
        if text != name and has_words(text):
            words += text.split()
    return " ".join(islice(words, BESIDE_WORDS))


def _explained(name: str, sources: Counter[str], beside: Mapping[str, Mapping[str, str]]) -> str:
    """Return a name with the words that most of its sources show beside it."""
    words = Counter(text for source in sources if (text := beside.get(source, {}).get(name)))
    return f"{name}: {min(words, key=lambda text: (-words[text], text))}" if words else name
