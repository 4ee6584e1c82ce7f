"""The texts by which a tool is found: its own words and inputs, on the page nearest to the start that has it."""

from __future__ import annotations

from collections.abc import Iterable

from waygraph.index.graph import InteractionGraph, Observation, Tool, nearest_states, tool_texts


def tool_observations(tools: Iterable[Tool], graph: InteractionGraph) -> list[Observation]:
    """Return tools as observations, which every encoder reads.

    A tool is to its page what a link is to a page that was not visited (`lead_text`): its texts stand in place of the
    names of the link. The page is known by its title and address.

    Parameters
    ----------
    tools
        The tools.
    graph
        The states that have them.

    Returns
    -------
    list of Observation
        In the order of the tools.
    """
    found = []
    for tool in tools:
        page = graph.nodes[nearest_states(tool, graph.nodes)[0]]
        texts = tuple(dict.fromkeys(text for text in tool_texts(tool) if text))
        found.append(Observation(tool.id, page.url, page.title, (), anchor_texts=texts, visited=False))
    return found
