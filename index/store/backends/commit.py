"""Commit protocol: what storage must guarantee so that a published map is complete or absent.

Implemented for disks by `waygraph.index.store.backends.local`, and for object stores by
`waygraph.index.store.backends.s3`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Protocol

from waygraph.core.errors import StoreError

#: A file that was written or touched within this time (seconds) counts as recent, and need not be touched again. It is
#: much shorter than the shortest grace of a garbage collection (`waygraph.index.store.upkeep.gc`), which deletes only
#: older files.
RECENT_SECONDS = 6 * 3600.0


class StoreLease(Protocol):
    """An exclusive claim that this process holds. It ends with `release`, or with the process."""

    def release(self) -> None:
        """Give up the claim and delete its file."""
        ...

    def is_valid(self) -> bool:
        """Return whether no other process can have taken the claim over yet.

        False after this process was suspended for long; it then stays False.
        """
        ...


def check_valid(lease: StoreLease) -> None:
    """Raise StoreError if other processes may have taken over a claim."""
    if not lease.is_valid():
        raise StoreError("This process was suspended for too long.", hint="Run the command again.")


class Commit(Protocol):
    """Write operations that need more than a plain file system. All paths are relative to the store, with `/`.

    On a local disk they use fsync, exclusive links and locks; in an object store they use conditional writes. A
    *register* is a small value that is replaced by compare-and-swap: on a disk one file, in an object store a series of
    records, of which the newest counts.
    """

    def read(self, path: str) -> bytes | None:
        """Return the content of a file; None if there is none (OSError if it cannot be read, or is no regular file)."""
        ...

    def put(self, path: str, content: bytes) -> None:
        """Write a file whole or not at all; the last writer wins."""
        ...

    def put_stream(self, path: str, chunks: Iterable[bytes]) -> None:
        """Write a file like `put`, without having it in memory as a whole."""
        ...

    def create(self, path: str, content: bytes) -> bool:
        """Write a new file durably; False, and no change, if it exists."""
        ...

    def ensure(self, path: str, content: bytes) -> bool:
        """Make sure that a content-addressed file exists, is intact and recent.

        Parameters
        ----------
        path
            Path of the file.
        content
            Its content.

        Returns
        -------
        bool
            Whether an old or damaged file existed: a garbage collection then may be about to delete it.
        """
        ...

    def touch(self, path: str) -> bool | None:
        """Make a file recent; None if it does not exist, True if it was old."""
        ...

    def read_register(self, path: str) -> bytes | None:
        """Return the value of a register; None if it was never set."""
        ...

    def read_registers(
        self, folder: str, name: str, among: Collection[str] | None = None
    ) -> Mapping[str, bytes | OSError]:
        """Return the values of the registers `<folder>/*/<name>`.

        Parameters
        ----------
        folder
            The folder.
        name
            Name of the registers.
        among
            The parts `*` of interest; the result may contain others too. None: all.

        Returns
        -------
        Mapping of str to bytes or OSError
            Values by `*`; the error of those that cannot be read alone.
        """
        ...

    def compare_and_swap(self, path: str, expected: bytes | None, content: bytes) -> bool:
        """Set a register durably if it holds `expected` (None: was never set); False, and no change, if not."""
        ...

    def claim(self, path: str) -> StoreLease | None:
        """Create a claim; None if it exists."""
        ...

    def take_over(self, path: str) -> StoreLease | None:
        """Take over the claim of a process that died; None if there is no claim, or its holder may be alive."""
        ...

    def is_claimed(self, path: str) -> bool:
        """Return whether there is a claim whose holder may be alive."""
        ...

    def persist(self, paths: Iterable[str]) -> None:
        """Make files, and their names in all folders above, survive a power failure."""
        ...

    def create_folder(self, path: str) -> None:
        """Create a folder and its parents, if the storage has folders."""
        ...

    def remove_folder(self, path: str) -> None:
        """Delete a folder with its content; a missing folder is no error."""
        ...

    def delete(self, paths: Iterable[str], *, under: StoreLease | None = None) -> None:
        """Delete files; missing ones are no error.

        Parameters
        ----------
        paths
            The files.
        under
            The claim under which they are deleted. Once it is lost, no more files are deleted (StoreError).
        """
        ...

    def prune_registers(self, folder: str, name: str, before: float) -> int:
        """Delete records of the registers `<folder>/*/<name>` that were replaced before a time; return their number."""
        ...

    def create_root(self) -> None:
        """Create the location of the store, as far as it is missing."""
        ...

    def check_writable(self, marker: str) -> None:
        """Reject a location that cannot be written, or that does not give the guarantees above.

        Parameters
        ----------
        marker
            A file that exists.

        Raises
        ------
        StoreError
            If something is missing.
        """
        ...

    def now(self) -> float:
        """Return the time (seconds since 1970) of the clock that sets the modification times of files."""
        ...
