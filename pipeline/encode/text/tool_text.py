"""The texts by which a tool is found: what people read of it and its inputs, on the nearest page that has it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from waygraph.index.graph import InteractionGraph, Node, Observation, Tool, nearest_states
from waygraph.index.graph.tool_texts import read_texts
from waygraph.pipeline.encode.text.lead_text import max_encoded


def tool_observations(tools: Iterable[Tool], graph: InteractionGraph) -> list[Observation]:
    """Return the tools that get vectors as observations, which every encoder reads.

    A tool is to its page what a link is to a page that was not visited (`lead_text`): its texts stand in place of the
    names of the link. The page is known by its title and address. As many tools as leads get vectors; a further tool
    with the texts of one that has some is found by those (`LoadedMap.said_alike`).

    Parameters
    ----------
    tools
        The tools.
    graph
        The states that have them.

    Returns
    -------
    list of Observation
        Tools near the start page first, and the first one with some texts before the second one with any.
    """
    return [
        Observation(tool.id, page.url, page.title, (), anchor_texts=texts, visited=False)
        for tool, page, texts in _kinds_first(tools, graph.nodes)[: max_encoded(len(graph))]
    ]


def _kinds_first(tools: Iterable[Tool], nodes: Mapping[str, Node]) -> list[tuple[Tool, Node, tuple[str, ...]]]:
    """Return tools with their nearest pages and their texts, the most useful to encode first."""
    known = [(tool, nodes[nearest_states(tool, nodes)[0]], read_texts(tool)) for tool in tools]
    taken: Counter[tuple[str, ...]] = Counter()
    ranked = []
    for each in sorted(known, key=lambda each: (each[1].depth, each[0].name, each[0].id)):
        ranked.append((taken[each[2]], each))
        taken[each[2]] += 1
    return [each for _, each in sorted(ranked, key=lambda one: one[0])]
