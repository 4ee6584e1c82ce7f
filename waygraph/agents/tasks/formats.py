"""Rows of published task files as tasks: WebArena, WebChoreArena, WebArena-Verified and Online-Mind2Web.

| format | recognised by |
| --- | --- |
| Online-Mind2Web | `confirmed_task`, or the `original_task_id` of its copies in WebArena's format |
| WebArena-Verified | `start_urls`, and `eval` is a list |
| WebChoreArena | `type_main` |
| WebArena | `eval` |
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from waygraph.agents.tasks.task import Task, TaskBenchmark, TaskEvaluation
from waygraph.benchmarks.webarena import PLACEHOLDER, START_URL_SEPARATOR
from waygraph.core.text import replace_surrogates

#: What scores the tasks of Online-Mind2Web (Xue et al. 2025): a judge that reads screenshots.
WEB_JUDGE = "WebJudge"
#: Fields that become labels of a task.
_LABELS = (
    "level", "reference_length", "type_main", "type_sub", "required_obs", "required_wait", "affects_environment",
    "description",
)  # fmt: skip


class _Row(BaseModel):
    model_config = ConfigDict(extra="ignore", coerce_numbers_to_str=True, hide_input_in_errors=True)


def _empty_without(value: object) -> object:
    return "" if value is None else value


_Name = Annotated[str, Field(min_length=1)]
_MaybeText = Annotated[str, BeforeValidator(_empty_without)]


class _WebArenaRow(_Row):
    task_id: _Name
    intent: _Name
    sites: tuple[_Name, ...] = Field(min_length=1)
    start_url: _Name
    storage_state: _MaybeText = ""
    intent_template_id: _MaybeText = ""
    eval: TaskEvaluation


class _VerifiedEvaluator(_Row):
    evaluator: _Name


class _VerifiedRow(_Row):
    task_id: _Name
    intent: _Name
    sites: tuple[_Name, ...] = Field(min_length=1)
    start_urls: tuple[_Name, ...] = Field(min_length=1)
    intent_template_id: _MaybeText = ""
    eval: tuple[_VerifiedEvaluator, ...] = Field(min_length=1)


class _OnlineMind2WebRow(_Row):
    task_id: _Name
    confirmed_task: _Name
    website: _Name


class _OnlineMind2WebCopyRow(_Row):
    """A task of Online-Mind2Web in WebArena's format. The reference answer in it is the same text in all tasks."""

    original_task_id: _Name
    intent: _Name
    start_url: _Name


def read_row(row: Mapping[str, Any]) -> Task:
    """Return the task of a row, whose format is recognised by its fields.

    Parameters
    ----------
    row
        The decoded row. Placeholders in it stay.

    Returns
    -------
    Task
        The task.

    Raises
    ------
    pydantic.ValidationError
        If a field is missing or malformed.
    ValueError
        If the row has the fields of no known format.
    """
    if "confirmed_task" in row:
        return _online_mind2web(row)
    if "original_task_id" in row:
        return _online_mind2web_copy(row)
    if isinstance(row.get("eval"), list):
        return _verified(row)
    if "eval" in row or "intent" in row:
        return _webarena(row)
    raise ValueError("the fields of no known format: neither 'eval' nor 'confirmed_task'")


def with_site_urls(row: object, urls: Mapping[str, str]) -> tuple[Any, set[str]]:
    """Return a row with URLs in place of placeholders, and the placeholders that have none.

    All texts are searched, as WebArena does it: placeholders occur in required contents too.

    Parameters
    ----------
    row
        A decoded JSON value.
    urls
        URLs by placeholder. A slash at their end is dropped, since paths follow.

    Returns
    -------
    tuple of value and set of str
        The row, and names without a URL.

    Examples
    --------
    >>> with_site_urls({"start_url": "__SHOP__/cart"}, {"__SHOP__": "http://127.0.0.1:7770/"})
    ({'start_url': 'http://127.0.0.1:7770/cart'}, set())
    """
    missing: set[str] = set()

    def replaced(value: object) -> object:
        if isinstance(value, str):
            missing.update(name for name in PLACEHOLDER.findall(value) if name not in urls)
            text = replace_surrogates(value)
            return PLACEHOLDER.sub(lambda name: urls.get(name[0], name[0]).rstrip("/"), text)
        if isinstance(value, list):
            return [replaced(item) for item in value]
        if isinstance(value, dict):
            return {key: replaced(item) for key, item in value.items()}
        return value

    return replaced(row), missing


def _start_urls(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(START_URL_SEPARATOR) if part.strip())


def _labels(row: Mapping[str, Any]) -> dict[str, str]:
    labels = {name: row[name] for name in _LABELS if row.get(name) not in (None, "")}
    return {name: str(value).lower() if isinstance(value, bool) else str(value) for name, value in labels.items()}


def _webarena(row: Mapping[str, Any]) -> Task:
    read = _WebArenaRow.model_validate(row)
    return Task(
        task_id=read.task_id,
        benchmark=TaskBenchmark.WEBCHOREARENA if "type_main" in row else TaskBenchmark.WEBARENA,
        intent=read.intent,
        sites=read.sites,
        start_urls=_start_urls(read.start_url),
        storage_state=read.storage_state,
        template=read.intent_template_id,
        labels=_labels(row),
        evaluation=read.eval,
    )


def _verified(row: Mapping[str, Any]) -> Task:
    read = _VerifiedRow.model_validate(row)
    return Task(
        task_id=read.task_id,
        benchmark=TaskBenchmark.WEBARENA_VERIFIED,
        intent=read.intent,
        sites=read.sites,
        start_urls=read.start_urls,
        template=read.intent_template_id,
        labels=_labels(row),
        other_scorers=tuple(each.evaluator for each in read.eval),
    )


def _online_mind2web(row: Mapping[str, Any]) -> Task:
    read = _OnlineMind2WebRow.model_validate(row)
    return Task(
        task_id=read.task_id,
        benchmark=TaskBenchmark.ONLINE_MIND2WEB,
        intent=read.confirmed_task,
        start_urls=(read.website,),
        labels=_labels(row),
        other_scorers=(WEB_JUDGE,),
    )


def _online_mind2web_copy(row: Mapping[str, Any]) -> Task:
    read = _OnlineMind2WebCopyRow.model_validate(row)
    return Task(
        task_id=read.original_task_id,
        benchmark=TaskBenchmark.ONLINE_MIND2WEB,
        intent=read.intent,
        start_urls=_start_urls(read.start_url),
        labels=_labels(row),
        other_scorers=(WEB_JUDGE,),
    )
