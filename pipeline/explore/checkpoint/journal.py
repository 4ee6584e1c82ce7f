"""The journal of an exploration, from which the next process resumes after a kill.

One SQLite file per site and run. `begin_round` writes in one transaction the result of the levels before and the work
of the new one. `record` writes each outcome as it arrives, in any order. Opening the file again returns the last
checkpoint and the outcomes since then, which are committed to the graph as if they had just arrived.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path
from typing import Any

from waygraph.core.errors import StoreError
from waygraph.pipeline.browser.page.snapshot import Candidate, Snapshot
from waygraph.pipeline.explore.checkpoint.journal_codec import Unreadable, pack, pack_snapshot, unpack, unpack_snapshot
from waygraph.pipeline.explore.checkpoint.journal_file import (
    Damaged,
    FileLease,
    JournalFile,
    Statement,
    not_usable,
    set_aside,
)
from waygraph.pipeline.explore.checkpoint.journal_records import (
    FORMAT,
    INDEX,
    SCHEMA,
    Blobs,
    Checkpoint,
    Resumed,
    checkpoint_statements,
    key_of,
    read_resumed,
    set_meta,
    to_bytes,
    to_text,
)
from waygraph.pipeline.explore.records.element_outcome import ElementOutcome
from waygraph.pipeline.explore.records.listing import SiteListing
from waygraph.pipeline.explore.records.outcome import ActionOutcome
from waygraph.pipeline.explore.records.state import Load

log = logging.getLogger(__name__)

#: Number of decoded snapshots in memory. A large page has about half a megabyte.
CACHED_SNAPSHOTS = 64
#: Number of rows that iterators read at once, to bound memory.
_PAGE = 2_000


class Journal:
    """The journal of one exploration, used by one process from one event loop. Create it with `open`.

    Methods that write return when the write is on the disk. A cancelled write happens nevertheless. They raise
    `StoreError` if the disk is full or the folder not writable: then nothing of that call is written, and everything
    before it is kept.

    Parameters
    ----------
    path
        The SQLite file.
    lease
        Exclusive lease of the file.
    file
        The open file.
    resumed
        What an interrupted run left; None in a new run.
    """

    def __init__(self, path: Path, lease: FileLease, file: JournalFile, resumed: Resumed | None) -> None:
        self._path = path
        self._lease = lease
        self._file = file
        self._resumed = resumed
        self._stored_keys: set[str] = set(resumed.snapshot_keys) if resumed else set()
        self._unwritten: dict[str, Snapshot] = {}
        self._cache: OrderedDict[str, Snapshot] = OrderedDict()
        self._withheld = set(resumed.withheld) if resumed else set()
        self._closed = False

    @classmethod
    def open(cls, path: Path, terms: Mapping[str, Any], *, resume: bool = True) -> Journal:
        """Open the journal of a run, or begin one.

        A file with other terms, of another format, or that cannot be read is renamed to `<name>.stale` (one is kept),
        and a new file is begun.

        Parameters
        ----------
        path
            The file.
        terms
            Start URL and settings that shape the graph, as plain JSON without secrets. Only a run with the same terms
            is resumed.
        resume
            If False, begin a new file in any case.

        Returns
        -------
        Journal
            Open and leased.

        Raises
        ------
        StoreError
            If another process uses it, or it cannot be created.
        """
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise not_usable(path, error) from error
        lease = FileLease.take(path.with_name(f"{path.name}.lock"))
        wanted = {name: json.dumps(value, sort_keys=True) for name, value in {**terms, "format": FORMAT}.items()}
        try:
            if path.exists():
                found = _reopen(path, wanted) if resume else "a new run was asked for"
                if not isinstance(found, str):
                    return cls(path, lease, *found)
                log.warning("journal/set_aside %s: %s", set_aside(path), found)
            return cls(path, lease, _begin(path, wanted), None)
        except BaseException:
            lease.release()
            raise

    # ---- checkpoints ---------------------------------------------------------------------------------------------

    def last(self) -> Resumed | None:
        """Return what an interrupted run left, until the first round begins. None in a new run."""
        return self._resumed

    async def begin_round(self, number: int, items: Sequence[tuple[str, Candidate]], checkpoint: Checkpoint) -> None:
        """Store the result of the rounds before `number` and the work of this one, in one transaction."""
        kept, work = checkpoint_statements(checkpoint, number - 1), tuple(items)
        first = key_of(number, 0)

        def statements() -> list[Statement]:
            rows = [(first + i, to_bytes(state), pack(candidate)) for i, (state, candidate) in enumerate(work)]
            return [
                *kept(),
                ("DELETE FROM items WHERE key >= ?", [(first,)]),
                ("INSERT INTO items VALUES (?, ?, ?)", rows),
                set_meta("progress", (number, 0)),
            ]

        await self._write(statements)
        self._resumed = None

    async def save(self, number: int, committed: int, checkpoint: Checkpoint) -> None:
        """Store a checkpoint after the first `committed` items of the current round."""
        kept = checkpoint_statements(checkpoint, number)
        await self._write(
            lambda: [
                *kept(),
                set_meta("progress", (number, committed)),
            ]
        )

    # ---- results -------------------------------------------------------------------------------------------------

    async def record(self, number: int, index: int, outcome: ActionOutcome) -> None:
        """Store the outcome of an item, which is done then. A second outcome replaces the first."""
        sql = "INSERT OR REPLACE INTO outcomes VALUES (?, ?)"
        await self._write(lambda: [(sql, [(key_of(number, index), pack(outcome))])])

    async def record_load(self, url: str, load: Load) -> None:
        """Store the result of loading a URL."""
        await self._write(lambda: [("INSERT OR REPLACE INTO loads VALUES (?, ?)", [(to_bytes(url), pack(load))])])

    async def record_capture(self, key: str, blobs: Blobs) -> None:
        """Store the hashes of screenshot, DOM and accessibility snapshot of a snapshot."""
        sql = "INSERT OR REPLACE INTO captures VALUES (?, ?)"
        await self._write(lambda: [(sql, [(to_bytes(key), pack(blobs))])])

    async def add_snapshot(self, key: str, snapshot: Snapshot) -> None:
        """Store a snapshot under its key, unless the key is stored already."""
        if key in self._stored_keys:
            return
        self._stored_keys.add(key)
        self._unwritten[key] = snapshot
        self._keep_decoded(key, snapshot)  # it is committed soon

        def settled(write: Future[None]) -> None:
            self._unwritten.pop(key, None)
            if write.cancelled() or write.exception() is not None:
                self._stored_keys.discard(key)
                self._cache.pop(key, None)

        sql = "INSERT OR REPLACE INTO looks VALUES (?, ?, ?, ?)"
        await self._write(lambda: [(sql, [(to_bytes(key), *pack_snapshot(snapshot))])], settled)

    def performed(self) -> Iterator[tuple[str, Candidate, ActionOutcome]]:
        """Yield the work items with an outcome and the state that was acted on, in canonical order."""
        for _, state, candidate, outcome in self._pages(
            """SELECT i.key, i.state, i.candidate, o.outcome FROM items i JOIN outcomes o ON o.key = i.key
            WHERE i.key > ? ORDER BY i.key LIMIT ?"""
        ):
            yield to_text(state), unpack(candidate, Candidate), unpack(outcome, ActionOutcome)

    def snapshot(self, key: str) -> Snapshot:
        """Return a snapshot, from memory or from the disk.

        Parameters
        ----------
        key
            Key of the snapshot.

        Returns
        -------
        Snapshot
            The snapshot.

        Raises
        ------
        KeyError
            If the key was not added.
        StoreError
            If it cannot be read.
        """
        snapshot = self._cache.pop(key, None) or self._unwritten.get(key)
        if snapshot is None:
            if key not in self._stored_keys:
                raise KeyError(key)
            try:
                (row,) = self._file.read("SELECT head, structure, body FROM looks WHERE key = ?", (to_bytes(key),))
                snapshot = unpack_snapshot(*row)
            except (Damaged, ValueError) as error:  # the snapshot is missing or damaged
                raise self._damaged(error) from error
        self._keep_decoded(key, snapshot)
        return snapshot

    def _keep_decoded(self, key: str, snapshot: Snapshot) -> None:
        self._cache[key] = snapshot
        if len(self._cache) > CACHED_SNAPSHOTS:
            self._cache.popitem(last=False)

    # ---- the listing of the site ---------------------------------------------------------------------------------

    def listing(self) -> SiteListing | None:
        """Return what the site lists of itself, if it was read before."""
        rows = self._read("SELECT value FROM meta WHERE name = 'listing'")
        return unpack(rows[0][0], SiteListing) if rows else None

    async def record_listing(self, listing: SiteListing) -> None:
        """Store what the site lists of itself."""
        await self._write(lambda: [set_meta("listing", listing)])

    # ---- secrets -------------------------------------------------------------------------------------------------

    def withheld(self) -> frozenset[str]:
        """Return the secrets that snapshots of this run contain, of all sessions that it was resumed with."""
        return frozenset(self._withheld)

    async def withhold(self, secrets: AbstractSet[str]) -> None:
        """Store secrets that later snapshots contain, for a process that resumes the run without knowing them."""
        if not secrets <= self._withheld:
            self._withheld |= secrets
            known = sorted(self._withheld)
            await self._write(lambda: [set_meta("withheld", known)])

    # ---- element outcomes ----------------------------------------------------------------------------------------

    def fates(self, current: Iterable[ElementOutcome] = (), *, cap: int | None = None) -> Iterator[ElementOutcome]:
        """Yield the outcome of every element and URL that was ever discovered, once each.

        Parameters
        ----------
        current
            Outcomes of the current round that no checkpoint has yet, see `Checkpoint.fates`.
        cap
            Index of the item at which a cap ended the current round, even if later items were performed; None without
            a cap.

        Yields
        ------
        ElementOutcome
            In no particular order.
        """
        try:
            yield from self._fates(list(current), cap)
        except (Unreadable, TypeError, ValueError) as error:
            raise self._damaged(error) from error

    def _fates(self, current: Sequence[ElementOutcome], cap: int | None) -> Iterator[ElementOutcome]:
        number, committed = self._progress()
        end = key_of(number + 1, 0) if cap is None else key_of(number, cap)
        since = {key_of(number, fate.item): fate for fate in current if fate.item is not None}
        for key, fate, has_outcome, state, candidate in self._pages(
            """SELECT i.key, f.fate, o.key IS NOT NULL, i.state, i.candidate FROM items i
            LEFT JOIN item_fates f ON f.key = i.key LEFT JOIN outcomes o ON o.key = i.key
            WHERE i.key > ? ORDER BY i.key LIMIT ?"""
        ):
            known = since.get(key) or (unpack(fate, ElementOutcome) if fate else None)
            action = unpack(candidate, Candidate).action
            if known is None:
                is_done = (has_outcome and key < end) or key < key_of(number, committed)
                known = ElementOutcome(to_text(state), str(action), "done", item=key & INDEX)
                if not is_done:
                    known = replace(known, status="pending", xpath=action.xpath)
            yield replace(known, target=known.target or action.target)
        for _, fate in self._pages("SELECT key, fate FROM other_fates WHERE key > ? ORDER BY key LIMIT ?"):
            yield unpack(fate, ElementOutcome)
        yield from (fate for fate in current if fate.item is None)

    # ---- end -----------------------------------------------------------------------------------------------------

    def close(self) -> None:
        """Complete queued writes and release the file. Idempotent."""
        if self._closed:
            return
        self._closed = True
        try:
            self._file.close()
        finally:
            self._lease.release()

    # ---- the file ------------------------------------------------------------------------------------------------

    async def _write(
        self, prepare: Callable[[], Sequence[Statement]], settled: Callable[[Future[None]], None] | None = None
    ) -> None:
        write = self._file.write(prepare)
        if settled is not None:
            write.add_done_callback(settled)
        try:
            # Not cancelled with its caller: other callers rely on an added snapshot, and a checkpoint is made once.
            await asyncio.shield(asyncio.wrap_future(write))
        except Damaged as error:
            raise self._damaged(error) from error

    def _read(self, sql: str, parameters: Sequence[Any] = ()) -> list[Any]:
        try:
            return self._file.read(sql, parameters)
        except Damaged as error:
            raise self._damaged(error) from error

    def _pages(self, sql: str) -> Iterator[Any]:
        last = -1
        while rows := self._read(sql, (last, _PAGE)):
            yield from rows
            last = rows[-1][0]

    def _progress(self) -> tuple[int, int]:
        rows = self._read("SELECT value FROM meta WHERE name = 'progress'")
        return unpack(rows[0][0], tuple[int, int]) if rows else (0, 0)

    def _damaged(self, error: Exception) -> StoreError:
        return StoreError(f"The journal {self._path} is damaged: {error}.", hint="Start again with --fresh.")


def _begin(path: Path, terms: Mapping[str, str]) -> JournalFile:
    """Return a new file."""
    try:
        file = JournalFile(path, SCHEMA)
    except Damaged as error:
        raise not_usable(path, error) from error
    try:
        file.write(lambda: [set_meta("terms", terms)]).result()
    except BaseException:
        file.close()
        raise
    return file


def _reopen(path: Path, terms: Mapping[str, str]) -> tuple[JournalFile, Resumed] | str:
    """Return an existing file and its content, or why it cannot be resumed."""
    file, resumed = None, None
    try:
        file = JournalFile(path, SCHEMA)
        meta = dict(file.read("SELECT name, value FROM meta"))
        was = unpack(meta["terms"], dict[str, str]) if "terms" in meta else {}
        if others := sorted(name for name in {*terms, *was} if terms.get(name) != was.get(name)):
            return f"it is of a run under other terms ({', '.join(others)})"
        if "progress" not in meta:
            return "nothing was explored yet"
        resumed = read_resumed(file, meta)
    except (Damaged, Unreadable, KeyError, TypeError, ValueError) as error:  # unexpected names or types of values
        return f"it cannot be read: {error!r}"
    finally:
        if file is not None and resumed is None:
            file.close()
    return file, resumed
