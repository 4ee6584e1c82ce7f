"""Retention of run reports and agents' feedback in a store, by age."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from pyarrow import fs

from waygraph.core.errors import InvalidInput
from waygraph.index.store.backends.concurrency import concurrent_map
from waygraph.index.store.backends.failures import translate_errors
from waygraph.index.store.feedback import FEEDBACK_FOLDER
from waygraph.index.store.store import Store

RUN_ID = re.compile(r"(\d{8}-\d{6})-[0-9a-f]{6}")
#: Age from which on records are deleted.
DEFAULT_RECORDS_AGE = timedelta(days=90)
#: Runs can be resumed for seven days, and serving and refreshing use the feedback of the last days.
MIN_RECORDS_AGE = timedelta(days=7)


@dataclass(slots=True)
class RetentionReport:
    """What was deleted, or would be deleted.

    Attributes
    ----------
    runs
        Ids of the runs, oldest first.
    feedback
        Number of feedback files: on a disk at most two per site, in a bucket one per call.
    bytes
        Total size.
    """

    runs: tuple[str, ...] = ()
    feedback: int = 0
    bytes: int = 0


def prune_records(
    store: Store, *, older_than: timedelta = DEFAULT_RECORDS_AGE, spare: Collection[str] = (), dry_run: bool = False
) -> RetentionReport:
    """Delete the records of runs and agents to which nothing was written for some time.

    A site's feedback file on a disk is deleted as a whole if nothing was added to it for that time.

    Parameters
    ----------
    store
        The store.
    older_than
        Minimum age of deleted records.
    spare
        Ids of runs that stay whatever their age, since they are unfinished.
    dry_run
        Whether to delete nothing, and only return what would be deleted.

    Returns
    -------
    RetentionReport
        What was deleted.

    Raises
    ------
    InvalidInput
        If `older_than` is less than a week: runs of the last days may still be resumed.
    StoreError
        If the store cannot be read or written.
    """
    if older_than < MIN_RECORDS_AGE:
        raise InvalidInput(
            f"Records of runs are kept for {MIN_RECORDS_AGE.days} days at least.",
            hint="Runs of the last days may still be resumed.",
        )
    with translate_errors(f"delete old records in {store.location}"):
        before = store.commit.now() - older_than.total_seconds()
        # A run's id has its start time by the coordinator's clock: enough to skip most runs without listing files.
        started = [run for run in store.runs() if run not in spare and _start_time(run) < before]
        listed = zip(started, concurrent_map(lambda run: _files(store, f"runs/{run}"), started), strict=True)
        old = [(run, files) for run, files in listed if all(file.mtime.timestamp() < before for file in files)]
        feedback = [file for file in _files(store, FEEDBACK_FOLDER) if file.mtime.timestamp() < before]
        if not dry_run:
            for run, _ in old:
                store.commit.remove_folder(f"runs/{run}")
            store.commit.delete([file.path for file in feedback])
    size = sum(file.size for file in (*feedback, *(file for _, files in old for file in files)))
    return RetentionReport(tuple(run for run, _ in old), len(feedback), size)


def _start_time(name: str) -> float:
    """Return the start time in a run's id; infinity if the name is not the id of a run."""
    match = RUN_ID.fullmatch(name)
    try:
        return datetime.strptime(match[1], "%Y%m%d-%H%M%S").replace(tzinfo=UTC).timestamp() if match else float("inf")
    except ValueError:  # the digits are not a date
        return float("inf")


def _files(store: Store, folder: str) -> list[fs.FileInfo]:
    entries = store.files.get_file_info(fs.FileSelector(folder, allow_not_found=True, recursive=True))
    return [entry for entry in entries if entry.type == fs.FileType.File]
