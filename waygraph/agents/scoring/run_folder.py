"""Stored runs: a folder per run with a folder per task, from which the run can be scored at any time.

    RUN/run.json                      which tasks, of which file, for which dialect
    RUN/tasks/ID/task.json            the task, with URLs in place of placeholders
    RUN/tasks/ID/trace.jsonl          what the agent saw and did; absent in runs of others
    RUN/tasks/ID/network.har          its requests, without contents and credentials; absent in runs of others
    RUN/tasks/ID/findings.json        values of the page targets
    RUN/tasks/ID/page-N-M.html        HTML of a page target whose locator is empty
    RUN/tasks/ID/answer.json          the agent's answer and its final URL; written last, so a task with it is complete

docs/scoring.md describes the fields.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal, TypeVar
from urllib.parse import quote

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from waygraph.agents.run_record import AttemptEnd
from waygraph.agents.scoring.dialects import DialectName
from waygraph.agents.scoring.final_state import FinalState, PageFinding, TargetKey
from waygraph.agents.tasks.task import Task
from waygraph.core.errors import InvalidInput
from waygraph.core.schemas import UsageModel
from waygraph.core.text import replace_surrogates

Document = TypeVar("Document", bound=BaseModel)

_RUN_FILE, _TASK_FILE, _FINDINGS_FILE, _ANSWER_FILE = "run.json", "task.json", "findings.json", "answer.json"
#: Version of the format that this module writes, and the newest that it reads.
FORMAT_VERSION = 1


class _Stored(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)


class _Versioned(BaseModel):
    version: int = FORMAT_VERSION


class TaskAnswer(_Stored):
    """The file `answer.json`: what the agent left.

    Attributes
    ----------
    version
        Version of the format.
    answer
        The answer; empty: there is none.
    url
        URL of the page that was open at the end.
    ended
        Why the agent stopped.
    steps
        Number of its actions.
    seconds
        Time it took.
    usage
        What its models took.
    problem
        What failed, if `ended` is `failed` or `budget`; empty otherwise.
    refused
        Number of documents outside of the task's sites, and of connections to addresses that are not public, that were
        refused.
    """

    version: Literal[1] = 1
    answer: str
    url: str
    ended: AttemptEnd = AttemptEnd.ANSWERED
    steps: int = 0
    seconds: float = 0.0
    usage: UsageModel | None = None
    problem: str = ""
    refused: int = 0


class StoredTaskFile(_Stored):
    """The task file that a run took its tasks from."""

    name: str
    sha256: str


class TaskRunManifest(_Stored):
    """The file `run.json`.

    Attributes
    ----------
    format
        Name of the format.
    version
        Version of the format.
    created
        Time at which the run began, ISO 8601.
    task_file
        The task file.
    dialect
        Dialect in which the run is to be scored; absent: each task in that of its benchmark.
    tasks
        Ids of the tasks that the run was to do.
    labels
        Further properties, such as the agent and its model.
    """

    format: Literal["waygraph-run"] = "waygraph-run"
    version: Literal[1] = 1
    created: str
    task_file: StoredTaskFile
    dialect: DialectName | None = None
    tasks: Annotated[tuple[str, ...], Field(min_length=1)]
    labels: dict[str, str] = {}


class _StoredFinding(_Stored):
    target: Annotated[int, Field(ge=0)]
    alternative: Annotated[int, Field(ge=0)] = 0
    in_file: bool = False
    finding: PageFinding


class _StoredFindings(_Stored):
    version: Literal[1] = 1
    findings: tuple[_StoredFinding, ...]


@dataclass(frozen=True, slots=True)
class StoredAttempt:
    """A task of a stored run.

    Attributes
    ----------
    task
        The task.
    answer
        What the agent left.
    state
        The final state, for scoring.
    """

    task: Task
    answer: TaskAnswer
    state: FinalState


@dataclass(frozen=True, slots=True)
class StoredRun:
    """A stored run.

    Attributes
    ----------
    manifest
        Its manifest.
    attempts
        Tasks by id.
    problems
        Why other tasks of the manifest cannot be read, by id.
    """

    manifest: TaskRunManifest
    attempts: Mapping[str, StoredAttempt]
    problems: Mapping[str, str] = field(default_factory=dict)


class RunFolder:
    """The folder of a stored run.

    Parameters
    ----------
    path
        The folder.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def write_manifest(self, manifest: TaskRunManifest) -> None:
        """Write `run.json`, and make the folder if it does not exist."""
        self._path.mkdir(parents=True, exist_ok=True)
        _write(self._path / _RUN_FILE, manifest)

    def has_manifest(self) -> bool:
        """Return whether there is a `run.json`."""
        return (self._path / _RUN_FILE).is_file()

    def read_manifest(self) -> TaskRunManifest:
        """Read `run.json`.

        Returns
        -------
        TaskRunManifest
            The manifest.

        Raises
        ------
        InvalidInput
            If it is missing or malformed.
        """
        try:
            return _read(self._path / _RUN_FILE, TaskRunManifest)
        except (OSError, ValueError) as error:
            raise InvalidInput(
                f"'{self._path}' is no stored run: {_reason(error)}", hint="The format: docs/scoring.md"
            ) from error

    def has(self, task_id: str) -> bool:
        """Return whether a task is complete."""
        return (self.task_folder(task_id) / _ANSWER_FILE).is_file()

    def write_attempt(self, task: Task, answer: TaskAnswer, findings: Mapping[TargetKey, PageFinding]) -> None:
        """Write the files of a task; an earlier attempt is replaced.

        Parameters
        ----------
        task
            The task.
        answer
            What the agent left.
        findings
            Values of its page targets.
        """
        folder = self.task_folder(task.task_id)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / _ANSWER_FILE).unlink(missing_ok=True)
        _write(folder / _TASK_FILE, task)
        stored = []
        for key, finding in sorted(findings.items()):
            # HTML is kept as a file of its own, so that it can be looked at.
            in_file = isinstance(finding.value, str) and _is_html_target(task, key)
            if in_file:
                _write_text(folder / _html_name(key), str(finding.value))
            kept = finding.model_copy(update={"value": None}) if in_file else finding
            stored.append(_StoredFinding(target=key[0], alternative=key[1], in_file=in_file, finding=kept))
        _write(folder / _FINDINGS_FILE, _StoredFindings(findings=tuple(stored)))
        _write(folder / _ANSWER_FILE, answer)

    def read(self) -> StoredRun:
        """Read the run.

        Returns
        -------
        StoredRun
            The run. A task whose files are missing or malformed is a problem; the others are read.

        Raises
        ------
        InvalidInput
            If `run.json` is missing or malformed.
        """
        manifest = self.read_manifest()
        attempts, problems = {}, {}
        for task_id in manifest.tasks:
            try:
                attempts[task_id] = self._read_attempt(task_id)
            except (OSError, ValueError) as error:
                problems[task_id] = _reason(error)
        return StoredRun(manifest, attempts, problems)

    def _read_attempt(self, task_id: str) -> StoredAttempt:
        folder = self.task_folder(task_id)
        answer = _read(folder / _ANSWER_FILE, TaskAnswer)
        task = _read(folder / _TASK_FILE, Task)
        if task.task_id != task_id:
            raise ValueError(f"{_TASK_FILE} holds the task '{task.task_id}'")
        findings: dict[TargetKey, PageFinding] = {}
        # Runs of others may have no findings at all, if no task has page targets.
        recorded = folder / _FINDINGS_FILE
        for stored in _read(recorded, _StoredFindings).findings if recorded.exists() else ():
            key = (stored.target, stored.alternative)
            finding = stored.finding
            if stored.in_file:
                html = (folder / _html_name(key)).read_text(encoding="utf-8")
                finding = finding.model_copy(update={"value": html})
            findings[key] = finding
        return StoredAttempt(task, answer, FinalState(answer.answer, answer.url, findings))

    def task_folder(self, task_id: str) -> Path:
        """Return the folder of a task, which may not exist yet."""
        # Ids come from files of others: nothing but a name of one folder may become of them.
        name = quote(task_id, safe="")
        return self._path / "tasks" / (name.replace(".", "%2E") if name.startswith(".") else name)


def _is_html_target(task: Task, key: TargetKey) -> bool:
    number, option = key
    targets = task.evaluation.program_html if task.evaluation is not None else ()
    if number >= len(targets):
        return False
    options = (targets[number], *targets[number].alternatives)
    return option < len(options) and not options[option].locator.strip()


def _html_name(key: TargetKey) -> str:
    return f"page-{key[0]}-{key[1]}.html"


def _write(path: Path, document: BaseModel) -> None:
    _write_text(path, json.dumps(document.model_dump(by_alias=True), indent=1, ensure_ascii=False) + "\n")


def _write_text(path: Path, text: str) -> None:
    # The file appears complete or not at all: a reader may look at any moment, and a writer may be killed.
    unfinished = path.with_name(f".{path.name}.tmp")
    unfinished.write_text(replace_surrogates(text), encoding="utf-8")
    unfinished.replace(path)


def _read(path: Path, document: type[Document]) -> Document:
    content = path.read_bytes()
    try:
        return document.model_validate_json(content)
    except ValidationError:
        # Another version has other fields: that says more than the first of them that is unknown.
        version = _Versioned.model_validate_json(content).version
        if version == FORMAT_VERSION:
            raise
        raise ValueError(f"{path.name} has version {version}; version {FORMAT_VERSION} is read") from None


def _reason(error: OSError | ValueError) -> str:
    if isinstance(error, ValidationError):
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        return f"{error.title}: {where}: {first['msg']}" if where else f"{error.title}: {first['msg']}"
    if isinstance(error, OSError):
        return f"{Path(error.filename or '').name}: {error.strerror}"
    return str(error)
