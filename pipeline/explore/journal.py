"""What is kept of an exploration while it runs, so that the next process goes on where this one was killed?

One SQLite file per site and run. The explorer works level by level: `begin_level` writes, in one transaction, what the
levels before it became and the work of the new one; `record` writes each outcome as it arrives, in any order. Whoever
opens the file again gets the last checkpoint and the outcomes since then, and takes them into the graph as if they had
just arrived.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from concurrent.futures import Future
from pathlib import Path
from typing import Any

from pipeline.browser.snapshot import Candidate, Snapshot
from pipeline.explore.journal_codec import Unreadable, pack, pack_look, unpack, unpack_look
from pipeline.explore.journal_file import Damaged, JournalFile, Lease, Statement, not_usable, set_aside
from pipeline.explore.journal_records import (
    FORMAT,
    INDEX,
    SCHEMA,
    Blobs,
    Checkpoint,
    Fate,
    Resumed,
    checkpoint_statements,
    key_of,
    read_resumed,
    set_meta,
    to_bytes,
    to_text,
)
from pipeline.explore.state import Load
from pipeline.explore.worker import Outcome
from waygraph.errors import StoreError

log = logging.getLogger(__name__)

#: Looks kept decoded in memory. A large page is about half a megabyte.
CACHED_LOOKS = 64
#: Rows read at once by iterators, so that a million of them never are in memory together.
_PAGE = 2_000


class Journal:
    """The durable side of one exploration. Made by `open`; used by one process, from one event loop.

    Methods that write return when the write is on the disk; a cancelled one happens all the same. They raise
    `StoreError` when the disk is full or the folder became unwritable: then nothing of that call was written, and
    everything before it is kept.
    """

    def __init__(self, path: Path, lease: Lease, file: JournalFile, resumed: Resumed | None) -> None:
        self._path = path
        self._lease = lease
        self._file = file
        self._resumed = resumed
        self._looks: set[str] = set(resumed.looks) if resumed else set()
        self._unwritten: dict[str, Snapshot] = {}
        self._cache: OrderedDict[str, Snapshot] = OrderedDict()
        self._withheld = set(resumed.withheld) if resumed else set()
        self._closed = False

    @classmethod
    def open(cls, path: Path, terms: Mapping[str, Any], *, resume: bool = True) -> Journal:
        """Open the journal of a run, or begin one.

        A file of other terms, of another format or that cannot be read is renamed to `<name>.stale` (one is kept), and
        a new one begun.

        Parameters
        ----------
        terms : start URL and settings that shape the graph: plain JSON. A run goes on under the same terms only. They
            are stored as they are: no secrets.
        resume : False begins anew in any case.

        Raises
        ------
        StoreError
            When another process uses it, or it cannot be made.
        """
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise not_usable(path, error) from error
        lease = Lease.take(path.with_name(f"{path.name}.lock"))
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
        """What an earlier run left behind, until the first level begins; nothing in a new run."""
        return self._resumed

    async def begin_level(self, depth: int, items: Sequence[tuple[str, Candidate]], checkpoint: Checkpoint) -> None:
        """Keep what the levels before `depth` became, and the work of this one (in canonical order), at once."""
        kept, work = checkpoint_statements(checkpoint, depth - 1), tuple(items)
        first = key_of(depth, 0)

        def statements() -> list[Statement]:
            rows = [(first + i, to_bytes(state), pack(candidate)) for i, (state, candidate) in enumerate(work)]
            return [
                *kept(),
                ("DELETE FROM items WHERE key >= ?", [(first,)]),
                ("INSERT INTO items VALUES (?, ?, ?)", rows),
                set_meta("progress", (depth, 0)),
            ]

        await self._write(statements)
        self._resumed = None

    async def save(self, depth: int, committed: int, checkpoint: Checkpoint) -> None:
        """Keep what the first `committed` items of the level under way became, so that a resume need not redo it."""
        kept = checkpoint_statements(checkpoint, depth)
        await self._write(
            lambda: [
                *kept(),
                set_meta("progress", (depth, committed)),
            ]
        )

    # ---- results -------------------------------------------------------------------------------------------------

    async def record(self, depth: int, index: int, outcome: Outcome) -> None:
        """Keep what performing an item brought about; the item is done by that. A second outcome replaces the first."""
        sql = "INSERT OR REPLACE INTO outcomes VALUES (?, ?)"
        await self._write(lambda: [(sql, [(key_of(depth, index), pack(outcome))])])

    async def record_load(self, url: str, load: Load) -> None:
        """Keep what loading a URL showed."""
        await self._write(lambda: [("INSERT OR REPLACE INTO loads VALUES (?, ?)", [(to_bytes(url), pack(load))])])

    async def record_capture(self, look: str, blobs: Blobs) -> None:
        """Keep the hashes of the screenshot, DOM and accessibility snapshot that belong to a look."""
        sql = "INSERT OR REPLACE INTO captures VALUES (?, ?)"
        await self._write(lambda: [(sql, [(to_bytes(look), pack(blobs))])])

    async def add_look(self, key: str, snapshot: Snapshot) -> None:
        """Keep a look under a key that tells it from others, unless one is kept under it already."""
        if key in self._looks:
            return
        self._looks.add(key)
        self._unwritten[key] = snapshot
        self._keep_decoded(key, snapshot)  # it is committed soon

        def settled(write: Future[None]) -> None:
            self._unwritten.pop(key, None)
            if write.cancelled() or write.exception() is not None:
                self._looks.discard(key)
                self._cache.pop(key, None)

        sql = "INSERT OR REPLACE INTO looks VALUES (?, ?, ?, ?)"
        await self._write(lambda: [(sql, [(to_bytes(key), *pack_look(snapshot))])], settled)

    def performed(self) -> Iterator[tuple[str, Candidate, Outcome]]:
        """All work items that have an outcome, with the state that was acted on, in canonical order."""
        for _, state, candidate, outcome in self._pages(
            """SELECT i.key, i.state, i.candidate, o.outcome FROM items i JOIN outcomes o ON o.key = i.key
            WHERE i.key > ? ORDER BY i.key LIMIT ?"""
        ):
            yield to_text(state), unpack(candidate, Candidate), unpack(outcome, Outcome)

    def look(self, key: str) -> Snapshot:
        """A look, read back when it is not one of those used last.

        Raises
        ------
        KeyError
            When none was added.
        StoreError
            When it cannot be read.
        """
        snapshot = self._cache.pop(key, None) or self._unwritten.get(key)
        if snapshot is None:
            if key not in self._looks:
                raise KeyError(key)
            try:
                (row,) = self._file.read("SELECT head, structure, body FROM looks WHERE key = ?", (to_bytes(key),))
                snapshot = unpack_look(*row)
            except (Damaged, ValueError) as error:  # a look that is missing, or other than it was written
                raise self._damaged(error) from error
        self._keep_decoded(key, snapshot)
        return snapshot

    def _keep_decoded(self, key: str, snapshot: Snapshot) -> None:
        self._cache[key] = snapshot
        if len(self._cache) > CACHED_LOOKS:
            self._cache.popitem(last=False)

    # ---- secrets -------------------------------------------------------------------------------------------------

    def withheld(self) -> frozenset[str]:
        """Secrets that looks of this run hold, of all accounts under which it was gone on with."""
        return frozenset(self._withheld)

    async def withhold(self, secrets: AbstractSet[str]) -> None:
        """Keep what must be taken out of the looks that follow, for whoever goes on with the run without knowing it."""
        if not secrets <= self._withheld:
            self._withheld |= secrets
            known = sorted(self._withheld)
            await self._write(lambda: [set_meta("withheld", known)])

    # ---- account -------------------------------------------------------------------------------------------------

    def fates(self, current: Iterable[Fate] = (), *, cap: int | None = None) -> Iterator[Fate]:
        """Every element and URL that was ever discovered, and what became of it: once each.

        Parameters
        ----------
        current : fates that no checkpoint has yet, as `Checkpoint` takes them: of the level under way.
        cap : from this item on the level under way was cut off, whether some of it had been performed by then or not.
        """
        try:
            yield from self._fates(list(current), cap)
        except (Unreadable, TypeError, ValueError) as error:
            raise self._damaged(error) from error

    def _fates(self, current: Sequence[Fate], cap: int | None) -> Iterator[Fate]:
        depth, committed = self._progress()
        end = key_of(depth + 1, 0) if cap is None else key_of(depth, cap)
        since = {key_of(depth, fate.item): fate for fate in current if fate.item is not None}
        for key, fate, has_outcome, state, candidate in self._pages(
            """SELECT i.key, f.fate, o.key IS NOT NULL, i.state, i.candidate FROM items i
            LEFT JOIN item_fates f ON f.key = i.key LEFT JOIN outcomes o ON o.key = i.key
            WHERE i.key > ? ORDER BY i.key LIMIT ?"""
        ):
            known = since.get(key) or (unpack(fate, Fate) if fate else None)
            if known is None:
                is_done = (has_outcome and key < end) or key < key_of(depth, committed)
                element = str(unpack(candidate, Candidate).action)
                known = Fate(to_text(state), element, "done" if is_done else "pending", item=key & INDEX)
            yield known
        for _, fate in self._pages("SELECT key, fate FROM other_fates WHERE key > ? ORDER BY key LIMIT ?"):
            yield unpack(fate, Fate)
        yield from (fate for fate in current if fate.item is None)

    # ---- end -----------------------------------------------------------------------------------------------------

    def close(self) -> None:
        """Write what was asked for and let others have the file. May be called twice."""
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
            # Not withdrawn when we are cancelled: others rely on a look that was added, and a checkpoint is made once.
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
        return StoreError(f"The journal {self._path} is damaged: {error}.", hint="Begin anew with --fresh.")


def _begin(path: Path, terms: Mapping[str, str]) -> JournalFile:
    """A new file."""
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
    """An existing file and what it holds, or why it is of no use."""
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
    except (Damaged, Unreadable, KeyError, TypeError, ValueError) as error:  # names or kinds of values that are wrong
        return f"it cannot be read: {error!r}"
    finally:
        if file is not None and resumed is None:
            file.close()
    return file, resumed
