"""Search of tools: by meaning, by their own words, and by how well the states that have them match the query.

A tool has few words, and the right question often none of them; the page around it says more. A tool on many states,
such as a site's search form, counts as much as these match on average.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from statistics import fmean
from typing import Any, NamedTuple
from urllib.parse import unquote, urlsplit

from waygraph.index.catalog.lexical import ASSUMED_MAXSIM, LexicalIndex
from waygraph.index.graph import Tool

#: Weight of the share of a query's words that a tool shows, beside the mean MaxSim of its states. Twice that of pages:
#: the words of a tool are all that it says of itself. Set by hand.
WORDS_WEIGHT = 1.0
#: Weight of the MaxSim of a tool's own vectors. Chosen on dev sites of `bench.tool_questions`.
MEANING_WEIGHT = 2.0
_CAMEL_CASE = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
#: Most texts of a schema that count.
_MAX_SCHEMA_TEXTS = 200


class FoundTool(NamedTuple):
    """A tool that was found, with the nearest of its states that may be a hit."""

    tool: Tool
    state: str
    score: float


def tool_texts(tool: Tool) -> Sequence[str]:
    """Return the texts of a tool whose words count: its own and those of its inputs."""
    own = (tool.name, tool.title, tool.description, _path(tool.target))
    return [_CAMEL_CASE.sub(" ", text) for text in (*own, *_schema_texts(tool.schema))]


def _path(url: str) -> str:
    try:
        return unquote(urlsplit(url).path)
    except ValueError:
        return ""  # addresses of forms may be malformed


def _schema_texts(schema: Mapping[str, Any]) -> list[str]:
    """Return names, titles, descriptions and choices of the properties of a schema, which may be anything."""
    properties = schema.get("properties")
    found: list[str] = []
    for name, given in properties.items() if isinstance(properties, dict) else ():
        each = given if isinstance(given, dict) else {}
        choices = each.get("anyOf")
        parts = [each, *(choices if isinstance(choices, list) else ())]
        texts = [part.get(key) for part in parts if isinstance(part, dict) for key in ("title", "description", "const")]
        values = each.get("enum")
        texts += values if isinstance(values, list) else ()
        found += [name, *(text for text in texts if isinstance(text, str))]
    return list(dict.fromkeys(found))[:_MAX_SCHEMA_TEXTS]


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
        MaxSim of the tools; those that are left out count as the mean of the others, and as
        `ASSUMED_MAXSIM` if there are none: searches across sites compare scores.
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
    assumed = fmean(own.values()) if own else ASSUMED_MAXSIM
    for name, share in zip(names, words.scores(query, names).tolist(), strict=True):
        having = tools[name].states
        around = sum(states.get(state, 0.0) for state in having) / len(having)
        scored.append((around + WORDS_WEIGHT * share + MEANING_WEIGHT * own.get(name, assumed), name))
    order = {name: place for place, name in enumerate(names)}
    for score, name in sorted(scored, key=lambda each: (-each[0], order[each[1]])):
        state = next((state for state in tools[name].states if keep(state, score)), None)
        if state is not None:
            yield FoundTool(tools[name], state, score)
