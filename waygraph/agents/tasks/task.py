"""One task of a benchmark: where it starts, what is wanted, and what its evaluators check.

The evaluation keeps the field names of WebArena's task files (Zhou et al. 2024, arXiv:2307.13854), which WebChoreArena
(arXiv:2506.01952) and the files of AgentOccam, WebNavigator and WebOperator extend.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Literal, Self
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from waygraph.agents.tasks.page_functions import SHOP_FUNCTIONS, parse_locator_call, parse_url_call

#: Separator of alternatives, in reference URLs and in required texts.
ALTERNATIVES_SEPARATOR = " |OR| "
#: The value of `fuzzy_match` that marks a task as impossible.
UNACHIEVABLE = "N/A"
#: The only rule of `url_match` in published files: the reference is a part of the final URL.
URL_RULE = "GOLD in PRED"
#: A page target's URL that means the page that the agent left.
LAST_PAGE = "last"


class TaskBenchmark(StrEnum):
    """The benchmark whose format a task has."""

    WEBARENA = "webarena"
    WEBCHOREARENA = "webchorearena"
    WEBARENA_VERIFIED = "webarena-verified"
    ONLINE_MIND2WEB = "online-mind2web"


class EvaluatorKind(StrEnum):
    """An evaluator of WebArena."""

    STRING_MATCH = "string_match"
    URL_MATCH = "url_match"
    PROGRAM_HTML = "program_html"


class _PublishedRecord(BaseModel):
    # Published files have further fields, such as notes of annotators, which mean nothing to evaluators.
    model_config = ConfigDict(
        frozen=True, extra="ignore", populate_by_name=True, coerce_numbers_to_str=True, hide_input_in_errors=True
    )


def _without_null(value: object) -> object:
    return () if value is None else value


def _checked_url(url: str) -> str:
    # The alternatives of a reference are URLs of their own.
    for part in url.split(ALTERNATIVES_SEPARATOR):
        try:
            urlsplit(part).port  # noqa: B018 - reading it is the check
        except ValueError as error:
            raise ValueError(f"not a URL ({error})") from None
    return url


#: A URL whose parts can be read; a placeholder may stand for its beginning.
_Url = Annotated[str, AfterValidator(_checked_url)]
_Texts = Annotated[tuple[str, ...], Field(min_length=1)]


class _Requirement(_PublishedRecord):
    # A rule that is not known would be a check that is not made.
    model_config = ConfigDict(extra="forbid")


class ReferenceAnswers(_Requirement):
    """The reference of `string_match`; several kinds may be given, and all of them count.

    Attributes
    ----------
    exact_match
        The whole answer.
    must_include
        Texts that the answer contains.
    fuzzy_match
        Answers for a judge, or the text `N/A`: the task is impossible, and the answer must say so.
    """

    exact_match: str | None = None
    must_include: _Texts | None = None
    fuzzy_match: str | _Texts | None = None

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.exact_match is None and self.must_include is None and self.fuzzy_match is None:
            raise ValueError("none of exact_match, must_include and fuzzy_match is given")
        return self

    @property
    def is_unachievable(self) -> bool:
        """Whether the task is impossible."""
        return self.fuzzy_match == UNACHIEVABLE


class RequiredContents(_Requirement):
    """What a page target's text must be or contain; the first kind that is given counts."""

    exact_match: str | None = None
    must_include: _Texts | None = None
    fuzzy_match: str | _Texts | None = None

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.exact_match is None and self.must_include is None and self.fuzzy_match is None:
            raise ValueError("none of exact_match, must_include and fuzzy_match is given")
        return self


class PageTarget(_PublishedRecord):
    """A part of a page that `program_html` checks.

    Attributes
    ----------
    url
        Page to look at: a URL, `last`, or `func:` and a call that gives a URL.
    locator
        JavaScript expression that gives the text, `func:` and a call, or empty: the page's HTML.
    required_contents
        What the text must be or contain.
    prep_actions
        JavaScript that runs in the page before the locator.
    alternatives
        Further targets; the best of all counts. `or` in files (AgentOccam's dialect).
    """

    url: Annotated[str, Field(min_length=1)]
    locator: str = ""
    required_contents: RequiredContents
    prep_actions: Annotated[tuple[str, ...], BeforeValidator(_without_null)] = ()
    alternatives: Annotated[tuple[PageTarget, ...], BeforeValidator(_without_null), Field(alias="or")] = ()

    @model_validator(mode="after")
    def _check(self) -> Self:
        # A call that no registry knows is found when the file is read, not at the end of a run.
        parse_url_call(self.url)
        parse_locator_call(self.locator)
        return self


class UrlAlternative(_PublishedRecord):
    """A further reference URL (AgentOccam's dialect)."""

    reference_url: Annotated[_Url, Field(min_length=1)]


class TaskEvaluation(_PublishedRecord):
    """The field `eval` of a WebArena task.

    Attributes
    ----------
    eval_types
        The evaluators; the reward is the product of their scores.
    reference_answers
        Reference of `string_match`.
    reference_url
        Reference of `url_match`: one or several URLs.
    program_html
        Targets of `program_html`.
    string_note
        Why the task is impossible, if it is.
    url_note
        Rule of `url_match`. The published files know one.
    alternatives
        Further reference URLs, `or` in files (AgentOccam's dialect).
    """

    eval_types: Annotated[tuple[EvaluatorKind, ...], Field(min_length=1)]
    reference_answers: Annotated[ReferenceAnswers | None, BeforeValidator(lambda value: value or None)] = None
    reference_url: _Url | None = None
    program_html: Annotated[tuple[PageTarget, ...], BeforeValidator(_without_null)] = ()
    string_note: str | None = None
    url_note: str | None = None
    alternatives: Annotated[tuple[UrlAlternative, ...], BeforeValidator(_without_null), Field(alias="or")] = ()

    @model_validator(mode="after")
    def _check(self) -> Self:
        if EvaluatorKind.STRING_MATCH in self.eval_types and self.reference_answers is None:
            raise ValueError("string_match has no reference_answers")
        if EvaluatorKind.URL_MATCH in self.eval_types:
            if not self.reference_url:
                raise ValueError("url_match has no reference_url")
            if (self.url_note or URL_RULE) != URL_RULE:
                raise ValueError(f"url_note is not '{URL_RULE}', the only known rule")
        if EvaluatorKind.PROGRAM_HTML in self.eval_types and not self.program_html:
            raise ValueError("program_html has no targets")
        return self


def calls_shop(evaluation: TaskEvaluation) -> bool:
    """Return whether a page target reads the API of the shop."""
    options = [option for target in evaluation.program_html for option in (target, *target.alternatives)]
    calls = [call for each in options for call in (parse_url_call(each.url), parse_locator_call(each.locator)) if call]
    return any(call.function in SHOP_FUNCTIONS for call in calls)


class Task(BaseModel):
    """One task, whatever file it was read from. Its JSON form is a file of stored runs.

    Attributes
    ----------
    version
        Version of this record.
    task_id
        Id of the task in its file.
    benchmark
        Benchmark whose format the task has.
    intent
        What the agent is asked to do.
    sites
        Names of the sites that the task involves, as the file has them.
    start_urls
        URLs of the tabs that the task starts with.
    site_urls
        URLs of its sites by their names, as far as they are known. The agent may go there too.
    home
        URL of a page that links to its sites; empty: none was given.
    storage_state
        File with the session of a logged-in user, as the file names it; empty: there is none.
    template
        Id of the template that the intent was made from; empty: unknown.
    labels
        Further properties that the file states, such as the level of difficulty.
    evaluation
        What WebArena's evaluators check; absent if the benchmark has others.
    other_scorers
        Scorers that are not part of waygraph and that this task needs.
    placeholders
        Names that stand for URLs of sites and that no URL was given for.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    version: Literal[1] = 1
    task_id: Annotated[str, Field(min_length=1)]
    benchmark: TaskBenchmark
    intent: Annotated[str, Field(min_length=1)]
    sites: tuple[str, ...] = ()
    start_urls: tuple[_Url, ...] = ()
    site_urls: dict[str, str] = {}
    home: str = ""
    storage_state: str = ""
    template: str = ""
    labels: dict[str, str] = {}
    evaluation: TaskEvaluation | None = None
    other_scorers: tuple[str, ...] = ()
    placeholders: tuple[str, ...] = ()
