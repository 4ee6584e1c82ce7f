"""Where is an unfinished exploration kept, and who removes it when its map is published?"""

from __future__ import annotations

import hashlib
import logging
import os
import re
from pathlib import Path

from index.store.layout import local_path
from pipeline.explore.journal_file import Lease, remove
from waygraph.errors import StoreError

log = logging.getLogger(__name__)


def journal_path(store: str, site: str) -> Path:
    """The journal of a site: in a local store itself, for other stores in this machine's cache folder.

    >>> journal_path("/maps", "127.0.0.1:8000").as_posix()
    '/maps/runs/journals/127.0.0.1_8000.sqlite'
    """
    return unfinished_work(store, "journals") / f"{file_name(site)}.sqlite"


def file_name(site: str) -> str:
    """A site's key as a name of files."""
    return re.sub(r"[^A-Za-z0-9.-]", "_", site)


def unfinished_work(store: str, kind: str) -> Path:
    """Where unfinished work of a kind is kept: in a local store itself, for others in this machine's cache folder."""
    try:
        return local_path(store) / "runs" / kind
    except StoreError:  # not a folder of this machine
        cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
        return cache / "waygraph" / kind / hashlib.sha256(store.encode()).hexdigest()[:16]


def drop_journal(path: Path) -> None:
    """Remove the journal of a site that is published; one that somebody uses again by now is left alone."""
    if not path.exists():
        return
    try:
        lease = Lease.take(path.with_name(f"{path.name}.lock"))
        try:
            remove(path)
        finally:
            lease.release()
    except StoreError as error:
        log.warning("journal/not_removed %s: %s", path, error.message)
