"""Queries of the retrieval benchmark, and the states that answer each.

One YAML file per site in `questions/`: a list of `{ask, at}`, for newer sites `{style, ask, at}`. `at` names every
acceptable target:

    /cart                        every state at that path (query and route belong to it, host and port do not)
    /info/*                      ... where * stands for anything
    /cart + A few words          ... that shows this text somewhere (more than one: + TEXT + TEXT)
    /settings ! Holiday mode     ... that does not show this text

Texts are compared piece by piece as the map has them, white space collapsed, upper and lower case as they are. No `at`:
nothing on the site answers this. A question of whose targets no state is in the map is counted and not ranked.

`questions/pages/` has questions about nearly every page of three dev sites, in the same form: many more, but each page
counts the same, whether people look for it or not.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

import yaml

from bench.retrieval.maps import path_of
from waygraph.core.urls import normalize_url
from waygraph.index.graph import InteractionGraph, Observation
from waygraph.pipeline.encode.text_counts import clean

FOLDER = Path(__file__).parent / "questions"
#: Questions about nearly every page of some sites.
PAGES = FOLDER / "pages"
_MARK = re.compile(r"\s+([+!])\s+")

#: How a question is written: it describes what the page shows; it says what somebody wants to do; two or three words as
#: typed into a search box. Empty: one of the first two.
Style = Literal["", "shows", "does", "words"]


@dataclass(frozen=True)
class Query:
    """A question, as it is written down."""

    site: str
    ask: str
    at: tuple[str, ...]
    style: Style = ""


@dataclass(frozen=True)
class Question:
    """A question with the states that answer it, as indices into the map's states in their order.

    `plain` are those of `targets` that a stricter reader accepts: where the target is a path alone, its addressable
    states (no menu opened, no dialog).
    """

    query: Query
    targets: frozenset[int]
    plain: frozenset[int]

    @property
    def is_answerable(self) -> bool:
        """Whether the site has an answer; the map may lack it."""
        return bool(self.query.at)


@dataclass(frozen=True)
class Target:
    """A condition on a state."""

    path: str
    shows: tuple[str, ...]
    hides: tuple[str, ...]

    @classmethod
    def parse(cls, text: str) -> Target:
        """Read `PATH [+ TEXT | ! TEXT] ...`."""
        path, *rest = _MARK.split(text)
        pairs = list(zip(rest[::2], rest[1::2], strict=True))
        return cls(
            path.strip(), tuple(t for mark, t in pairs if mark == "+"), tuple(t for mark, t in pairs if mark == "!")
        )

    def is_at(self, url: str) -> bool:
        """Whether a URL, normalised or as the browser reports it, has the path that is meant."""
        pattern = re.escape(self.path).replace(r"\*", ".*")
        return re.fullmatch(pattern, path_of(normalize_url(url))) is not None

    def fits(self, observation: Observation) -> bool:
        """Whether a state is meant."""
        if not self.is_at(observation.url):
            return False
        shown = "\n".join(clean(segment.text) for segment in observation.segments)
        return all(text in shown for text in self.shows) and not any(text in shown for text in self.hides)


def read_queries(site: str, folder: Path = FOLDER) -> list[Query]:
    """Return the queries of a site, as written.

    Parameters
    ----------
    site
        Name of the site.
    folder
        Folder with the queries: `FOLDER` or `PAGES`.

    Returns
    -------
    list of Query
        The queries.

    Raises
    ------
    ValueError
        When an entry is not of the form that the module describes, or asked twice.
    """
    queries = []
    for entry in yaml.safe_load((folder / f"{site}.yaml").read_text(encoding="utf-8")):
        style = entry.get("style", "")
        if set(entry) - {"style"} != {"ask", "at"} or style not in get_args(Style) or not entry["ask"].strip():
            raise ValueError(f"{site}.yaml: {entry} is no query")
        queries.append(Query(site, entry["ask"], tuple(entry["at"]), style))
    if len({query.ask for query in queries}) != len(queries):
        raise ValueError(f"{site}.yaml asks something twice")
    return queries


def resolve(
    queries: Sequence[Query], graph: InteractionGraph, observations: Mapping[str, Observation]
) -> list[Question]:
    """Find the states that are meant; none for what nothing on the site answers and for pages that the map lacks."""
    states = [(i, node, observations[node.id]) for i, node in enumerate(graph.nodes.values())]
    questions = []
    for query in queries:
        targets, plain = set[int](), set[int]()
        for text in query.at:
            target = Target.parse(text)
            fitting = [(i, node) for i, node, seen in states if target.fits(seen)]
            targets.update(i for i, _ in fitting)
            alone = [i for i, node in fitting if node.addressable] if not (target.shows or target.hides) else []
            plain.update(alone or (i for i, _ in fitting))
        questions.append(Question(query, frozenset(targets), frozenset(plain)))
    return questions
