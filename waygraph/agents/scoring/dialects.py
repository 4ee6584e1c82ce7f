"""The dialects in which published evaluators score the same task files.

Three public evaluators of WebArena's format give different rewards to equal runs, so a score without the name of its
dialect means little. docs/scoring.md compares them.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from waygraph.agents.tasks.task import TaskBenchmark


class DialectName(StrEnum):
    """Name of a dialect, after the repository whose evaluators have it."""

    WEBARENA = "webarena"
    AGENTOCCAM = "agentoccam"
    WEBOPERATOR = "weboperator"


@dataclass(frozen=True, slots=True)
class ScoringDialect:
    """How an evaluator reads a task.

    Attributes
    ----------
    name
        Name of the dialect.
    has_partial_credit
        Whether several required texts give the share that is found, rather than all or nothing.
    has_answer_alternatives
        Whether ` |OR| ` separates alternatives in the required texts of an answer too, not only of pages.
    joins_fuzzy_references
        Whether a judge sees all references at once and accepts additional information, rather than each alone.
    has_or_fields
        Whether the fields `or` of a task count.
    lowers_urls
        Whether URLs are compared without regard to case.
    drops_slash_before_query
        Whether a slash before the query of a URL is dropped, as one at the end of a URL is.
    judges_pages
        Whether `fuzzy_match` is known in the required contents of pages.
    """

    name: DialectName
    has_partial_credit: bool = False
    has_answer_alternatives: bool = False
    joins_fuzzy_references: bool = False
    has_or_fields: bool = False
    lowers_urls: bool = False
    drops_slash_before_query: bool = False
    judges_pages: bool = False


DIALECTS = {
    dialect.name: dialect
    for dialect in (
        # web-arena-x/webarena
        ScoringDialect(DialectName.WEBARENA, drops_slash_before_query=True),
        # amazon-science/AgentOccam; WebNavigator and WebChoreArena have copies
        ScoringDialect(
            DialectName.AGENTOCCAM,
            has_partial_credit=True,
            has_answer_alternatives=True,
            joins_fuzzy_references=True,
            has_or_fields=True,
            lowers_urls=True,
        ),
        # kagnlp/WebOperator
        ScoringDialect(
            DialectName.WEBOPERATOR, has_answer_alternatives=True, joins_fuzzy_references=True, judges_pages=True
        ),
    )
}

#: Benchmarks whose own evaluators speak another dialect than WebArena's.
_OWN_DIALECTS = {TaskBenchmark.WEBCHOREARENA: DialectName.AGENTOCCAM}


def dialect_of(benchmark: TaskBenchmark) -> DialectName:
    """Return the dialect of a benchmark's own evaluators."""
    return _OWN_DIALECTS.get(benchmark, DialectName.WEBARENA)
