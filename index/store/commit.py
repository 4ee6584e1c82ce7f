"""What must storage promise so that a published map is whole or absent? The seam; see `local` and `objects`."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Protocol

from waygraph.errors import StoreError

#: A file that was written or touched this lately (seconds) counts as young: whoever needs it need not touch it again.
#: Much less than the shortest grace of a garbage collection (`index.store.gc`), which deletes old files alone.
YOUNG_SECONDS = 6 * 3600.0


class Lease(Protocol):
    """An exclusive claim that this process holds. It ends with `release`, or with the process."""

    def release(self) -> None:
        """Give the claim up and delete its file."""
        ...

    def lasts(self) -> bool:
        """Whether nobody can have taken it over yet; once False, always: after this process was suspended for long."""
        ...


def check_lasts(lease: Lease) -> None:
    """Refuse to go on by a claim that others may have taken over (StoreError)."""
    if not lease.lasts():
        raise StoreError("This process was suspended for too long.", hint="Run the command again.")


class Commit(Protocol):
    """The few operations that need more than a plain filesystem. All paths are relative to the store, with `/`.

    On a local disk they are built of fsync, exclusive links and locks (`index.store.local`), on an object store of
    conditional writes (`index.store.objects`). A *register* is a small value that is replaced by compare-and-swap: a
    file here, there a series of records, of which the newest one counts.
    """

    def put(self, path: str, content: bytes) -> None:
        """Write a file whole or not at all; whoever writes last wins."""
        ...

    def put_stream(self, path: str, chunks: Iterable[bytes]) -> None:
        """The same for a file that need not be in memory as a whole."""
        ...

    def create(self, path: str, content: bytes) -> bool:
        """Write a file durably that does not exist; False, and no change, if it does."""
        ...

    def keep(self, path: str, content: bytes) -> bool:
        """See to it that a file that is named by its content is there, whole and young.

        True when an old or damaged one was there: then somebody may be about to delete it.
        """
        ...

    def touch(self, path: str) -> bool | None:
        """Make a file young; None when there is none, True when it was old."""
        ...

    def register(self, path: str) -> bytes | None:
        """The value of a register; None when it was never set."""
        ...

    def registers(self, folder: str, name: str, among: Collection[str] | None = None) -> Mapping[str, bytes]:
        """The values of the registers `<folder>/*/<name>` by what stands for `*`: of all, or at least of some."""
        ...

    def swap(self, path: str, expected: bytes | None, content: bytes) -> bool:
        """Set a register durably if it holds `expected` (None: was never set); False, and no change, if not."""
        ...

    def claim(self, path: str) -> Lease | None:
        """Create a claim; None when it exists."""
        ...

    def take_over(self, path: str) -> Lease | None:
        """The claim of a process that died; None when there is none or its holder may be alive."""
        ...

    def is_claimed(self, path: str) -> bool:
        """Whether there is a claim whose holder may be alive."""
        ...

    def persist(self, paths: Iterable[str]) -> None:
        """Return when these files, and their names in all folders above, would survive a power failure."""
        ...

    def make_folder(self, path: str) -> None:
        """Make a folder and those above it, where folders are something that is made."""
        ...

    def remove_folder(self, path: str) -> None:
        """Delete a folder with all that is in it; one that is not there is no error."""
        ...

    def delete(self, paths: Iterable[str], *, under: Lease | None = None) -> None:
        """Delete files; those that are not there are no error.

        With `under`, none is deleted any more when that claim is lost (StoreError).
        """
        ...

    def prune(self, folder: str, name: str, before: float) -> int:
        """Delete records of the registers `<folder>/*/<name>` that were replaced before a time; returns how many."""
        ...

    def make_root(self) -> None:
        """Make the place of the store, as far as it is missing."""
        ...

    def check_writable(self, marker: str) -> None:
        """Refuse a place that cannot be written, or does not keep the promises above; `marker` is a file that exists.

        Raises
        ------
        StoreError
            With what is missing.

        """
        ...

    def now(self) -> float:
        """The time (seconds since 1970) by the clock that the ages of files are told by."""
        ...
