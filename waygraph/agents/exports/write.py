"""Files of a stored run in another format: a folder per task."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from PIL import Image

from waygraph.agents.exports.online_mind2web import TRAJECTORY, result_document, trajectory
from waygraph.agents.exports.webarena_verified import agent_response
from waygraph.agents.runner.har import changes_data
from waygraph.agents.runner.network_recording import NETWORK_FILE
from waygraph.agents.runner.trace_reading import TaskTrace, read_trace
from waygraph.agents.scoring.run_folder import RunFolder, StoredAttempt
from waygraph.core.errors import InvalidInput


class ExportFormat(StrEnum):
    """Formats of other scorers."""

    WEBARENA_VERIFIED = "webarena-verified"
    ONLINE_MIND2WEB = "online-mind2web"


@dataclass(frozen=True, slots=True)
class ExportedRun:
    """What was exported.

    Attributes
    ----------
    tasks
        Ids of the tasks that have files now.
    left_out
        Why the others have none, by id.
    """

    tasks: tuple[str, ...]
    left_out: Mapping[str, str]


class _NotExportable(Exception):
    """A task lacks a file that the format needs."""


def export_run(run: RunFolder, kind: ExportFormat, output: Path) -> ExportedRun:
    """Write the tasks of a stored run in another format.

    Parameters
    ----------
    run
        The run.
    kind
        The format.
    output
        Folder that is made, with a folder per task.

    Returns
    -------
    ExportedRun
        The tasks with files. Tasks without a result, or without a file that the format needs, are left out.

    Raises
    ------
    InvalidInput
        If the run cannot be read, or the output exists and is not empty.
    """
    stored = run.read()
    if output.exists() and (not output.is_dir() or any(output.iterdir())):
        raise InvalidInput(f"'{output}' exists and is not empty.", hint="Choose another folder.")
    done, left_out = [], dict(stored.problems)
    for task_id, attempt in stored.attempts.items():
        trace = read_trace(run.task_folder(task_id))
        folder = output / run.task_folder(task_id).name
        try:
            match kind:
                case ExportFormat.WEBARENA_VERIFIED:
                    _write_verified(attempt, trace, folder)
                case ExportFormat.ONLINE_MIND2WEB:
                    _write_online_mind2web(attempt, trace, folder)
        except _NotExportable as error:
            left_out[task_id] = str(error)
        else:
            done.append(task_id)
    return ExportedRun(tuple(done), left_out)


def _write_verified(attempt: StoredAttempt, trace: TaskTrace, folder: Path) -> None:
    if trace.network is None:
        raise _NotExportable(f"it has no {NETWORK_FILE}, which the scorer reads")
    try:
        archive = json.loads(trace.network.read_bytes())
    except ValueError as error:
        raise _NotExportable(f"its {NETWORK_FILE} is malformed: {error}") from error
    folder.mkdir(parents=True)
    response = agent_response(attempt.answer, changed_data=changes_data(archive))
    _write_json(folder / "agent_response.json", response.model_dump(mode="json"))
    shutil.copyfile(trace.network, folder / NETWORK_FILE)


def _write_online_mind2web(attempt: StoredAttempt, trace: TaskTrace, folder: Path) -> None:
    steps = trajectory(attempt.answer, trace)
    images = [(step.image(number), trace.screenshot(step.source)) for number, step in enumerate(steps)]
    if not any(source for _, source in images):
        raise _NotExportable("it has no screenshots, which the judge looks at")
    (folder / TRAJECTORY).mkdir(parents=True)
    for name, source in images:
        if source is not None:
            with Image.open(source) as image:
                image.save(folder / name, format="PNG")
    _write_json(folder / "result.json", result_document(attempt.task, attempt.answer, steps))


def _write_json(path: Path, document: object) -> None:
    path.write_text(json.dumps(document, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
