"""What do other states call a state? The names of what leads to it and the words beside them: a map's anchor text.

A table of contents says "csv: write and read tabular data" where the page itself says "class csv.Dialect"; an
administration's menu explains what its pages only do. Such words come from the source states, so a state can be found
by words that it does not show (Craswell, Hawking and Robertson, SIGIR 2001, on links of the web).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import islice

from index.graph import InteractionGraph, Observation
from pipeline.encode.composites import ACTION_ROLES, COLUMN_ROLES, FIELD_ROLES, has_words, shortened
from pipeline.encode.counts import clean

MAX_NAMES = 6
#: A name that leads to more states than this share of the site, and than so many, tells none of them apart ("Edit").
COMMON_SHARE = 0.1
COMMON_STATES = 5
#: So many words beside a name are taken along, from so many of the segments that follow it.
BESIDE_WORDS = 20
BESIDE_SEGMENTS = 4
#: What follows a name belongs to something else from the first of these on.
_STARTS_ANEW = ACTION_ROLES | FIELD_ROLES | COLUMN_ROLES | {"heading"}


def with_names(graph: InteractionGraph, observations: Iterable[Observation]) -> list[Observation]:
    """The same observations, in order, each with what other states call it.

    Names come from every edge that leads to a state from another one, inherited edges included; the rarest first. Equal
    for equal graphs and observations, whatever their order. Only words that `observations` show are taken along.
    """
    seen = list(observations)
    sources = _sources(graph)
    targets = Counter(name for names in sources.values() for name in names)
    often = max(COMMON_STATES, COMMON_SHARE * len(graph))
    asked: dict[str, set[str]] = defaultdict(set)
    chosen: dict[str, list[str]] = {}
    for observation in seen:
        names = sources.get(observation.node_id, {})
        rare = sorted((n for n in names if targets[n] <= often), key=lambda n: (targets[n], -sum(names[n].values()), n))
        distinct = {name.casefold(): name for name in reversed(rare)}
        chosen[observation.node_id] = [name for name in rare if distinct[name.casefold()] == name][:MAX_NAMES]
        for name in chosen[observation.node_id]:
            for source in names[name]:
                asked[source].add(name)
    beside = {o.node_id: _beside(o, asked[o.node_id]) for o in seen if o.node_id in asked}
    return [
        replace(
            observation,
            called=tuple(
                _explained(name, sources[observation.node_id][name], beside) for name in chosen[observation.node_id]
            ),
        )
        for observation in seen
    ]


def by_node(graph: InteractionGraph, observations: Iterable[Observation]) -> dict[str, Observation]:
    """`with_names`, by node id."""
    return {observation.node_id: observation for observation in with_names(graph, observations)}


def _sources(graph: InteractionGraph) -> dict[str, dict[str, Counter[str]]]:
    """For every state, the names that lead to it, and how many edges of each name come from where."""
    found: dict[str, dict[str, Counter[str]]] = defaultdict(lambda: defaultdict(Counter))
    for edge in graph.edges:
        name = shortened(clean(edge.action.name))
        if edge.source != edge.target and edge.action.kind != "goto" and has_words(name):
            found[edge.target][name][edge.source] += 1
    return found


def _beside(observation: Observation, names: set[str]) -> dict[str, str]:
    """What stands behind each of these names where the state shows it first."""
    pieces = [(clean(segment.text), segment.role) for segment in observation.segments]
    found: dict[str, str] = {}
    for index, (text, _) in enumerate(pieces):
        name = shortened(text)
        if name in names and name not in found:
            found[name] = _following(text, pieces[index + 1 : index + 1 + BESIDE_SEGMENTS])
    return found


def _following(name: str, pieces: Sequence[tuple[str, str]]) -> str:
    words: list[str] = []
    for text, role in pieces:
        if role in _STARTS_ANEW or len(words) >= BESIDE_WORDS:
            break
        if text != name and has_words(text):
            words += text.split()
    return " ".join(islice(words, BESIDE_WORDS))


def _explained(name: str, sources: Counter[str], beside: Mapping[str, Mapping[str, str]]) -> str:
    """The name with the words that most of its sources show beside it."""
    words = Counter(text for source in sources if (text := beside.get(source, {}).get(name)))
    return f"{name}: {min(words, key=lambda text: (-words[text], text))}" if words else name
