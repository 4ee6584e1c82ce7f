"""Room that a store on a disk keeps for its garbage collection, which must write a little before it can delete."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from waygraph.index.store.backends.local import LocalCommit
from waygraph.index.store.layout import RESERVE_FILE
from waygraph.index.store.store import Store

#: Enough for claims and for the `HEAD` of a site, of which one is written at a time.
RESERVE_BYTES = 1 << 20


@contextmanager
def spare_room(store: Store) -> Iterator[None]:
    """Free the reserve of a store for the block, and keep it again afterwards, if there is room by then.

    On a full disk no version could be removed otherwise: `HEAD` is replaced before files are deleted. A store whose
    garbage was never collected has no reserve yet. Buckets need none.

    Parameters
    ----------
    store
        The store.

    Yields
    ------
    None
        While the reserve is free.
    """
    if not isinstance(store.commit, LocalCommit):
        yield
        return
    reserve = Path(store.location) / RESERVE_FILE
    reserve.unlink(missing_ok=True)
    try:
        yield
    finally:
        # Without room for it, the next collection keeps it.
        with suppress(OSError):
            _allocate(reserve)


def _allocate(path: Path) -> None:
    with path.open("wb") as file:
        try:
            os.posix_fallocate(file.fileno(), 0, RESERVE_BYTES)
        except OSError:
            path.unlink()
            raise
