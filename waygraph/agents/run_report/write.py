"""Files of a report: `report.html` of a run, and `trace.html` in the folder of each task."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from waygraph.agents.run_report.figures import task_results
from waygraph.agents.run_report.page import repeats_page, run_page
from waygraph.agents.run_report.task_page import task_page
from waygraph.agents.run_report.tree_view import read_tree
from waygraph.agents.runner.trace import TREE_FILE
from waygraph.agents.runner.trace_reading import read_trace
from waygraph.agents.scoring.run_folder import RunFolder

if TYPE_CHECKING:
    from collections.abc import Sequence

    from waygraph.agents.scoring.repeats import RepeatedScore
    from waygraph.agents.scoring.run_folder import StoredRun
    from waygraph.agents.scoring.run_score import RunScore

REPORT_FILE, TASK_FILE = "report.html", "trace.html"


def write_report(folder: Path, run: StoredRun, score: RunScore) -> Path:
    """Write the pages of a run; earlier ones are replaced.

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
        The page of the run.
    """
    links, results = {}, []
    files = RunFolder(folder)
    for result in task_results(run, score):
        task_folder = files.task_folder(result.task_id)
        trace = read_trace(task_folder)
        # The trace says why an attempt failed, the run only that there is no result.
        shown = result if result.attempt else replace(result, problem=trace.problem or result.problem)
        results.append(shown)
        if task_folder.is_dir():
            tree = read_tree(task_folder / TREE_FILE)
            _write(task_folder / TASK_FILE, task_page(shown, trace, back=f"../../{REPORT_FILE}", tree=tree))
            links[result.task_id] = f"tasks/{quote(task_folder.name, safe='')}/{TASK_FILE}"
    return _write(folder / REPORT_FILE, run_page(f"Run {folder.name}", run.manifest, score, results, links))


def write_repeats_report(folder: Path, score: RepeatedScore, repeats: Sequence[Path]) -> Path:
    """Write the page of a repeated run.

    Parameters
    ----------
    folder
        Folder of the run.
    score
        Its scores.
    repeats
        Folders of the repeats, which have pages already.

    Returns
    -------
    Path
        The page.
    """
    links = [f"{path.relative_to(folder).as_posix()}/{REPORT_FILE}" for path in repeats]
    return _write(folder / REPORT_FILE, repeats_page(f"Run {folder.name}", score, links))


def _write(path: Path, text: str) -> Path:
    unfinished = path.with_name(f".{path.name}.tmp")
    unfinished.write_text(text, encoding="utf-8", errors="replace")
    unfinished.replace(path)
    return path
