"""Traces of the tasks of a run for one file: bounded in size, those of tasks that failed first.

A file that can be mailed does not hold every window of a large run. Screenshots are made smaller, and they and the
texts that agents read are taken in turns: the last one of each task, then the first one, and so on until the limit.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from PIL import Image, UnidentifiedImageError

from waygraph.agents.runner.task_replay import TaskWalk, read_walk
from waygraph.core.replay_file import ReplayFile, ReplayStep
from waygraph.core.report_file import size_in_report
from waygraph.core.text import shortened

#: Largest size of all screenshots of a report (as base64 a third more), of all texts that agents read, and of all
#: traces without both. With the table of tasks, a report stays below 20 MiB, which mail servers commonly accept.
MAX_IMAGES_BYTES, MAX_TEXTS_BYTES, MAX_TRACES_BYTES = 9 * 2**20, 2 * 2**20, 3 * 2**20
#: Width of a screenshot and quality of its JPEG: about 15 kB each.
_IMAGE_PX, _IMAGE_QUALITY = 640, 50
#: Longest text that an agent read, longest words of a model, longest message, and longest JSON of a step's details.
_MAX_READ, _MAX_THINKING, _MAX_MESSAGE, _MAX_DETAILS = 20_000, 4_000, 1_000, 4_000

#: A screenshot or a text.
Loaded = TypeVar("Loaded", bytes, str)


@dataclass(frozen=True, slots=True)
class RunTraces:
    """The traces of a run.

    Attributes
    ----------
    replays
        Traces by task id, as the page reads them (`ReplayFile`), without images and texts.
    problems
        Why attempts failed or ended early, by task id.
    images
        JPEG images by the key that the traces name them with.
    texts
        Texts that agents read, by key.
    left_out
        Numbers of `traces`, `images` and `texts` that did not fit, or could not be read.
    """

    replays: Mapping[str, dict[str, Any]]
    problems: Mapping[str, str]
    images: Mapping[str, bytes]
    texts: Mapping[str, str]
    left_out: Mapping[str, int]


@dataclass(slots=True)
class _Named:
    """What the trace of a task refers to, without its contents. Files are named by the hashes of their contents."""

    images: dict[str, Path] = field(default_factory=dict)
    texts: dict[str, Path] = field(default_factory=dict)

    def add_image_file(self, path: Path) -> str:
        self.images.setdefault(path.stem, path)
        return path.stem

    def add_text_file(self, path: Path) -> str:
        self.texts.setdefault(path.stem, path)
        return path.stem


def read_traces(folders: Mapping[str, Path], failed: Callable[[str], bool]) -> RunTraces:
    """Read the traces of tasks.

    Parameters
    ----------
    folders
        Folders of the tasks by id, in the order of the run.
    failed
        Whether a task did not succeed.

    Returns
    -------
    RunTraces
        The traces that fit into a report.
    """
    replays: dict[str, dict[str, Any]] = {}
    problems: dict[str, str] = {}
    named: list[_Named] = []
    size = too_many = 0
    for task_id in sorted(folders, key=lambda each: not failed(each)):
        files = _Named()
        walk = read_walk(folders[task_id], files)
        if walk.outcome is not None:
            problems[task_id] = walk.outcome.message
        if not walk.steps and walk.outcome is None and walk.tree is None:
            continue
        replay = _replay(walk)
        length = size_in_report(replay)
        if size + length > MAX_TRACES_BYTES:
            too_many += 1
            continue
        size += length
        replays[task_id] = replay
        named.append(files)
    images, no_images = _take_turns([each.images for each in named], _smaller, len, MAX_IMAGES_BYTES)
    texts, no_texts = _take_turns([each.texts for each in named], _text, size_in_report, MAX_TEXTS_BYTES)
    return RunTraces(
        replays=replays,
        problems=problems,
        images=images,
        texts=texts,
        left_out={"traces": too_many, "images": no_images, "texts": no_texts},
    )


def _replay(walk: TaskWalk) -> dict[str, Any]:
    # What the details of a search's steps hold is in its tree.
    steps = [_bounded(step, with_details=walk.tree is None) for step in walk.steps]
    replay = ReplayFile(
        kind="agent", created="", title=walk.title, site=walk.site, facts=walk.facts, outcome=walk.outcome,
        steps=steps, tree=walk.tree,
    )  # fmt: skip
    return replay.model_dump(mode="json", exclude_defaults=True)


def _bounded(step: ReplayStep, *, with_details: bool) -> ReplayStep:
    details = step.details if with_details else {}
    if len(json.dumps(details)) > _MAX_DETAILS:
        details = {name: shortened(json.dumps(value), _MAX_DETAILS // len(details)) for name, value in details.items()}
    return step.model_copy(
        update={
            "action": shortened(step.action, _MAX_MESSAGE),
            "message": shortened(step.message, _MAX_MESSAGE),
            "thinking": shortened(step.thinking, _MAX_THINKING),
            "details": details,
        }
    )


def _take_turns(
    tasks: Sequence[Mapping[str, Path]],
    load: Callable[[Path], Loaded | None],
    size_of: Callable[[Loaded], int],
    limit: int,
) -> tuple[dict[str, Loaded], int]:
    """Load files of all tasks in turns until they are too large together; return them, and the number of the others."""
    orders = [_most_telling_first(files) for files in tasks]
    wanted: dict[str, Path] = {}
    for turn in range(max(map(len, orders), default=0)):
        for files, order in zip(tasks, orders, strict=True):
            if turn < len(order):
                wanted.setdefault(order[turn], files[order[turn]])
    taken: dict[str, Loaded] = {}
    size = 0
    for key, path in wanted.items():
        content = load(path)
        if content is None:
            continue
        size += size_of(content)
        if size > limit:
            break
        taken[key] = content
    return taken, len(wanted) - len(taken)


def _most_telling_first(names: Iterable[str]) -> list[str]:
    ordered = list(names)
    return [*ordered[-1:], *ordered[:-1]]


def _smaller(path: Path) -> bytes | None:
    """Return a smaller JPEG; None if the file is no image."""
    try:
        with Image.open(path) as image:
            image.draft("RGB", (_IMAGE_PX, 1))  # decode fewer pixels, as far as the format allows
            small = image.convert("RGB")
    except (OSError, UnidentifiedImageError):
        return None
    small.thumbnail((_IMAGE_PX, _IMAGE_PX * 4))
    out = io.BytesIO()
    small.save(out, format="JPEG", quality=_IMAGE_QUALITY, optimize=True)
    return out.getvalue()


def _text(path: Path) -> str | None:
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    return shortened(text, _MAX_READ)
