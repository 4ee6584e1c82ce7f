"""Task files: read as they are published; a row that is wrong is a named problem, and the other rows are tasks."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from waygraph.agents.tasks.formats import read_row, with_site_urls
from waygraph.agents.tasks.json_rows import JsonRow, json_rows
from waygraph.agents.tasks.task import Task
from waygraph.benchmarks.webarena import HOMEPAGE, PLACEHOLDER, placeholder_of
from waygraph.core.errors import InvalidInput
from waygraph.core.urls import site_key

#: Largest task file in bytes. The largest published one has 1.3 MB.
MAX_TASK_FILE_BYTES = 64 * 2**20
#: What is said of the kinds of errors whose own messages speak of types of Python.
_MESSAGES = {
    "missing": "missing",
    "string_type": "not a text",
    "tuple_type": "not a list",
    "model_type": "not an object",
    "too_short": "empty",
    "string_too_short": "empty",
    "extra_forbidden": "not a known rule",
}


@dataclass(frozen=True, slots=True)
class TaskRowProblem:
    """Why a row is no task.

    Attributes
    ----------
    line
        Number of the row's first line, from 1.
    task_id
        Id of the task; empty: unknown.
    field
        The field that is wrong, as a path such as `eval.program_html.0.url`; empty: the whole row.
    message
        What is wrong.
    """

    line: int
    task_id: str
    field: str
    message: str


@dataclass(frozen=True, slots=True)
class TaskFile:
    """The contents of a task file.

    Attributes
    ----------
    name
        Name of the file.
    sha256
        Hash of the file, which identifies the tasks: copies of one benchmark differ.
    tasks
        Tasks in the order of the file.
    problems
        Rows that are no tasks.
    """

    name: str
    sha256: str
    tasks: tuple[Task, ...]
    problems: tuple[TaskRowProblem, ...]

    def placeholders(self) -> list[str]:
        """Return all placeholders without a URL, sorted."""
        return sorted({name for task in self.tasks for name in task.placeholders})


def read_task_file(path: Path, site_urls: Mapping[str, str] | None = None) -> TaskFile:
    """Read a task file in any known format: a JSON list, or JSON lines.

    Parameters
    ----------
    path
        The file.
    site_urls
        URLs by placeholder. Placeholders without a URL stay in the tasks, which name them.

    Returns
    -------
    TaskFile
        Tasks and problems.

    Raises
    ------
    InvalidInput
        If the file cannot be read, or has no rows.
    """
    try:
        if (size := path.stat().st_size) > MAX_TASK_FILE_BYTES:
            raise InvalidInput(
                f"The task file '{path}' has {size:,} bytes; up to {MAX_TASK_FILE_BYTES:,} are read.",
                hint="Split it.",
            )
        content = path.read_bytes()
    except OSError as error:
        raise InvalidInput(
            f"The task file '{path}' cannot be read: {error.strerror}.", hint="Check the path."
        ) from error
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidInput(f"The task file '{path}' is not UTF-8 text.", hint="Check the path.") from error
    tasks: dict[str, Task] = {}
    problems: list[TaskRowProblem] = []
    for row in json_rows(text):
        _read(row, site_urls or {}, tasks, problems)
    if not tasks and not problems:
        raise InvalidInput(f"The task file '{path}' has no rows.", hint="Formats: docs/tasks.md")
    return TaskFile(path.name, hashlib.sha256(content).hexdigest(), tuple(tasks.values()), tuple(problems))


def _read(row: JsonRow, site_urls: Mapping[str, str], tasks: dict[str, Task], problems: list[TaskRowProblem]) -> None:
    """Add the row to the tasks or to the problems."""
    task_id = ""

    def add_problem(field: str, message: str) -> None:
        problems.append(TaskRowProblem(row.line, task_id, field, message))

    if row.problem:
        return add_problem("", row.problem)
    if not isinstance(row.value, dict):
        return add_problem("", "not an object")
    value, missing = with_site_urls(row.value, site_urls)
    task_id = str(value.get("task_id", value.get("original_task_id", "")))
    try:
        task = read_row(value)
    except ValidationError as error:
        for each in error.errors():
            message = _MESSAGES.get(each["type"]) or each["msg"].removeprefix("Value error, ").rstrip(".")
            add_problem(".".join(str(part) for part in each["loc"]), message)
        return None
    except ValueError as error:
        return add_problem("", str(error))
    if task.task_id in tasks:
        return add_problem("task_id", "a task with this id precedes it")
    urls = _site_urls(task, site_urls)
    missing |= {placeholder_of(site) for site in task.sites if site not in urls}
    found = {
        "placeholders": tuple(sorted(missing)),
        "site_urls": urls,
        "home": site_urls.get(placeholder_of(HOMEPAGE), ""),
    }
    tasks[task.task_id] = task.model_copy(update=found)
    return None


def _site_urls(task: Task, given: Mapping[str, str]) -> dict[str, str]:
    """Return the URLs of a task's sites by their names.

    A site whose placeholder has no URL is at a host of the start URLs that no other site has, if there are enough such
    hosts: files may name their sites without placeholders.
    """
    urls = {site: given[placeholder_of(site)] for site in task.sites if placeholder_of(site) in given}
    hosts = {site_key(url): url for url in reversed(task.start_urls) if not PLACEHOLDER.search(url)}
    for url in urls.values():
        hosts.pop(site_key(url), None)
    unknown = [site for site in task.sites if site not in urls]
    if len(unknown) <= len(hosts):
        urls |= zip(unknown, reversed(hosts.values()), strict=False)
    return {site: urls[site] for site in task.sites if site in urls}
