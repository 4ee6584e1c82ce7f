"""Which tasks the exam has, and what each of them needs.

The exam is the tasks of `dev.json` and `test.json`, and the read-only ones over several sites in `bench/tasks`.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.tasks.site_tasks import ACROSS, CHANGE_SOMETHING

FOLDER = Path(__file__).parent
#: The exam's own task files by split.
EXAM = {"dev": FOLDER / "dev.json", "test": FOLDER / "test.json"}
NEEDLE, RENAMED = "needle", "renamed"


@dataclass(frozen=True)
class ExamTask:
    """What a task of the exam needs.

    Attributes
    ----------
    task_id : its id in the task file.
    file : the task file.
    split : the split of its sites.
    sites : names of its sites.
    kind : what it asks for, see `bench.tasks.site_tasks.KINDS`.
    traits : `needle`, if the page is one among hundreds alike; `renamed`, if a site bears a made-up name.
    pages : the pages that answer it, as site and path. A replay asks the APIs of JupyterLab and Node-RED; here are the
        pages that show the same.
    """

    task_id: str
    file: Path
    split: str
    sites: tuple[str, ...]
    kind: str
    traits: frozenset[str]
    pages: tuple[tuple[str, str], ...]


def exam_tasks(split: str) -> list[ExamTask]:
    """Return the tasks of the exam on the sites of a split."""
    return [
        _task(path, split, row)
        for path in (ACROSS[split], EXAM[split])
        for row in json.loads(path.read_text(encoding="utf-8"))
        if row["kind"] != CHANGE_SOMETHING
    ]


def _task(path: Path, split: str, row: dict[str, Any]) -> ExamTask:
    replay = row["replay"]
    places = [*replay.get("shown", ()), *([replay["right"]] if "path" in replay["right"] else ())]
    pages = dict.fromkeys(_page(place.get("site", row["sites"][0]), place["path"]) for place in places)
    traits = frozenset(row.get("traits", ()))
    return ExamTask(str(row["task_id"]), path, split, tuple(row["sites"]), row["kind"], traits, tuple(pages))


def _page(site: str, path: str) -> tuple[str, str]:
    if site == "jupyterlab":
        path = "lab" if path == "api/contents" else path.replace("api/contents/", "lab/tree/")
    return site, "" if (site, path) == ("node_red", "flows") else path
