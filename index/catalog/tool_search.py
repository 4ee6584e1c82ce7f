"""Search of tools: by meaning, by their own words, and by how well the states that have them match the query.

A tool has few words, and the right question often none of them; the page around it says more. A tool on many states,
such as a site's search form, counts as much as these match on average.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from waygraph.index.catalog.lexical import LexicalIndex
from waygraph.index.graph import Tool

#: Weight of the share of a query's words that a tool shows, beside the mean MaxSim of its states. Twice that of pages:
#: the words of a tool are all that it says of itself. Set by hand.
WORDS_WEIGHT = 1.0
#: Weight of the MaxSim of a tool's own vectors.
MEANING_WEIGHT = 1.0


class FoundTool(NamedTuple):
    """A tool that was found, with the nearest of its states that may be a hit."""

    tool: Tool
    state: str
    score: float


def find_tools(
    tools: Mapping[str, Tool],
    words: LexicalIndex,
    query: str,
    *,
    own: Mapping[str, float],
    states: Mapping[str, float],
    keep: Callable[[str, float], bool],
) -> Iterator[FoundTool]:
    """Yield the tools that match a query, best first.

    Parameters
    ----------
    tools
        Tools by id, each with its nearest states first.
    words
        The words of the tools, by id.
    query
        The query in words.
    own
        MaxSim of the tools; those without vectors are left out, and count as zero.
    states
        MaxSim of the states; those without vectors are left out, and count as zero.
    keep
        Returns whether a state, with the score of the tool, may be a hit.

    Yields
    ------
    FoundTool
        The tools that have such a state.
    """
    names = list(tools)
    scored = []
    for name, share in zip(names, words.scores(query, names).tolist(), strict=True):
        having = tools[name].states
        around = sum(states.get(state, 0.0) for state in having) / len(having)
        scored.append((around + WORDS_WEIGHT * share + MEANING_WEIGHT * own.get(name, 0.0), name))
    order = {name: place for place, name in enumerate(names)}
    for score, name in sorted(scored, key=lambda each: (-each[0], order[each[1]])):
        state = next((state for state in tools[name].states if keep(state, score)), None)
        if state is not None:
            yield FoundTool(tools[name], state, score)
