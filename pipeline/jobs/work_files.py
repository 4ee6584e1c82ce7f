"""Files of unfinished work: journals of explorations, run databases and spooled vectors."""

from __future__ import annotations

import hashlib
import logging
import os
import re
from pathlib import Path

from waygraph.core.errors import StoreError
from waygraph.index.store.backends.storage_urls import local_path
from waygraph.pipeline.explore.checkpoint.journal_file import FileLease, remove

log = logging.getLogger(__name__)


def journal_path(store: str, site: str) -> Path:
    """Return the journal of a site: in a local store itself, for other stores in this machine's cache folder.

    >>> journal_path("/maps", "127.0.0.1:8000").as_posix()
    '/maps/runs/journals/127.0.0.1_8000.sqlite'
    """
    return work_folder(store, "journals") / f"{safe_file_name(site)}.sqlite"


def safe_file_name(site: str) -> str:
    """Return a site's key as a file name."""
    return re.sub(r"[^A-Za-z0-9.-]", "_", site)


def work_folder(store: str, kind: str) -> Path:
    """Return the folder of a kind of work: in a local store itself, for other stores in this machine's cache folder."""
    try:
        return local_path(store) / "runs" / kind
    except StoreError:  # not a folder of this machine
        cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
        return cache / "waygraph" / kind / hashlib.sha256(store.encode()).hexdigest()[:16]


def remove_journal(path: Path) -> None:
    """Remove the journal of a published site, unless another process uses it again."""
    if not path.exists():
        return
    try:
        lease = FileLease.take(path.with_name(f"{path.name}.lock"))
        try:
            remove(path)
        finally:
            lease.release()
    except StoreError as error:
        log.warning("journal/not_removed %s: %s", path, error.message)
