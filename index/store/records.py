"""What do runs and agents leave in a store, and when does it go? Reports and feedback, by their age."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from pyarrow import fs

from index.store.concurrency import concurrently
from index.store.feedback import FEEDBACK_FOLDER
from index.store.layout import explained
from waygraph.errors import InvalidInput

if TYPE_CHECKING:
    from index.store.store import Store

RUN_ID = re.compile(r"(\d{8}-\d{6})-[0-9a-f]{6}")
KEEP_RECORDS = timedelta(days=90)
#: Runs may be gone on with for seven days, and serving and refreshing go by feedback of the last days.
SHORTEST_RECORDS = timedelta(days=7)


@dataclass(slots=True)
class Records:
    """What was deleted, or would be.

    Attributes
    ----------
    runs : their ids, oldest first.
    feedback : files of reports by agents: on a disk at most two a site, in a bucket one for each call.
    bytes : their size together.

    """

    runs: tuple[str, ...] = ()
    feedback: int = 0
    bytes: int = 0


def prune_records(
    store: Store, *, older_than: timedelta = KEEP_RECORDS, spare: Collection[str] = (), dry_run: bool = False
) -> Records:
    """Delete what runs and agents left and nobody has written to for so long.

    Of feedback on a disk, a site's file goes as a whole, when nothing was added to it for that time.

    Parameters
    ----------
    spare : ids of runs that stay, whatever their age: unfinished ones.
    dry_run : delete nothing, and return what would be deleted.

    Raises
    ------
    InvalidInput
        When that is less than a week: runs of the last days may still be gone on with.
    StoreError
        When the store cannot be read or written.

    """
    if older_than < SHORTEST_RECORDS:
        raise InvalidInput(
            f"Records of runs are kept for {SHORTEST_RECORDS.days} days at least.",
            hint="Runs of the last days may still be gone on with.",
        )
    with explained(f"delete old records in {store.location}"):
        before = store.commit.now() - older_than.total_seconds()
        # Ids tell when a run began by the coordinator's clock: enough to leave most of them alone unseen.
        begun = [run for run in store.runs() if run not in spare and _begun(run) < before]
        old = [(run, found) for run, found in zip(begun, concurrently(lambda run: _files(store, f"runs/{run}"), begun),
               strict=True) if all(file.mtime.timestamp() < before for file in found)]  # fmt: skip
        feedback = [file for file in _files(store, FEEDBACK_FOLDER) if file.mtime.timestamp() < before]
        if not dry_run:
            for run, _ in old:
                store.commit.remove_folder(f"runs/{run}")
            store.commit.delete([file.path for file in feedback])
    size = sum(file.size for file in (*feedback, *(file for _, found in old for file in found)))
    return Records(tuple(run for run, _ in old), len(feedback), size)


def _begun(name: str) -> float:
    """When a run began, by its id; what is no run is as young as can be."""
    match = RUN_ID.fullmatch(name)
    try:
        return datetime.strptime(match[1], "%Y%m%d-%H%M%S").replace(tzinfo=UTC).timestamp() if match else float("inf")
    except ValueError:  # the digits are no date
        return float("inf")


def _files(store: Store, folder: str) -> list[fs.FileInfo]:
    entries = store.files.get_file_info(fs.FileSelector(folder, allow_not_found=True, recursive=True))
    return [entry for entry in entries if entry.type == fs.FileType.File]
