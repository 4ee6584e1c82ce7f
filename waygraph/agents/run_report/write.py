"""The file of a report: `report.html` in the folder of a run."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from waygraph.agents.run_report.page import repeats_page, run_page, task_results
from waygraph.agents.run_report.traces import read_traces
from waygraph.agents.scoring.run_folder import RunFolder

if TYPE_CHECKING:
    from collections.abc import Sequence

    from waygraph.agents.scoring.repeats import RepeatedScore
    from waygraph.agents.scoring.run_folder import StoredRun
    from waygraph.agents.scoring.run_score import RunScore

REPORT_FILE = "report.html"


def write_report(folder: Path, run: StoredRun, score: RunScore) -> Path:
    """Write the report of a run; an earlier one is replaced.

    Parameters
    ----------
    folder
        Folder of the run.
    run
        The run.
    score
        Its scores.

    Returns
    -------
    Path
        The file.
    """
    files = RunFolder(folder)
    results = task_results(run, score)
    succeeded = {result.task_id for result in results if result.score.success}
    folders = {result.task_id: files.task_folder(result.task_id) for result in results}
    traces = read_traces(folders, lambda task_id: task_id not in succeeded)
    # The trace says why an attempt failed, the run only that there is no result.
    shown = [
        result if result.attempt else replace(result, problem=traces.problems.get(result.task_id) or result.problem)
        for result in results
    ]
    return _write(folder / REPORT_FILE, run_page(folder.name, run.manifest, score, shown, traces).html())


def write_repeats_report(folder: Path, score: RepeatedScore, repeats: Sequence[Path]) -> Path:
    """Write the report of a repeated run.

    Parameters
    ----------
    folder
        Folder of the run.
    score
        Its scores.
    repeats
        Folders of the repeats, which have reports already.

    Returns
    -------
    Path
        The file.
    """
    links = [f"{path.relative_to(folder).as_posix()}/{REPORT_FILE}" for path in repeats]
    return _write(folder / REPORT_FILE, repeats_page(folder.name, score, links).html())


def _write(path: Path, text: str) -> Path:
    unfinished = path.with_name(f".{path.name}.tmp")
    unfinished.write_text(text, encoding="utf-8", errors="replace")
    unfinished.replace(path)
    return path
