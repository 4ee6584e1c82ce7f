"""Records of the journal and their tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Any, overload

from waygraph.index.graph import Edge
from waygraph.pipeline.browser.page.snapshot import Candidate
from waygraph.pipeline.explore.checkpoint.journal_codec import pack, unpack
from waygraph.pipeline.explore.checkpoint.journal_file import JournalFile, Statement
from waygraph.pipeline.explore.records.element_outcome import ElementOutcome
from waygraph.pipeline.explore.records.outcome import ActionOutcome
from waygraph.pipeline.explore.records.state import Load, State

#: Version of the file. A file of another version is not resumed.
FORMAT = 7

SCHEMA = """
CREATE TABLE IF NOT EXISTS meta (name TEXT PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS items (key INTEGER PRIMARY KEY, state BLOB NOT NULL, candidate BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS outcomes (key INTEGER PRIMARY KEY, outcome BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS item_fates (key INTEGER PRIMARY KEY, fate BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS other_fates (key INTEGER PRIMARY KEY, fate BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS states (key INTEGER PRIMARY KEY, state BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS edges (key INTEGER PRIMARY KEY, edge BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS loads (url BLOB PRIMARY KEY, load BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS captures (look BLOB PRIMARY KEY, blobs BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS looks (key BLOB PRIMARY KEY, head BLOB NOT NULL, structure BLOB NOT NULL,
    body BLOB NOT NULL);
"""

Blobs = tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """What was committed to the graph since the last checkpoint, and the state of all parts.

    Attributes
    ----------
    states
        New states, in order.
    edges
        New edges, in order.
    fates
        Outcomes of elements that are not simply done: of items committed since then, and of elements that never became
        items.
    counters
        All counters.
    memories
        State of the parts as plain JSON, by name.
    """

    states: Sequence[State] = ()
    edges: Sequence[Edge] = ()
    fates: Sequence[ElementOutcome] = ()
    counters: Mapping[str, int] = field(default_factory=dict)
    memories: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Resumed:
    """What an interrupted run left: everything of the last checkpoint, and what was recorded after it.

    Attributes
    ----------
    round
        Number of the round in progress.
    committed
        Number of its items that are part of the checkpoint.
    items
        All items of that round, decoded on access.
    outcomes
        Outcomes of items from `committed` on, by index.
    states
        All states.
    edges
        All edges.
    counters
        All counters.
    memories
        State of the parts as plain JSON, by name.
    loads
        Results of loaded URLs.
    captures
        Content hashes of captures, by snapshot key.
    snapshot_keys
        Keys of the stored snapshots, see `Journal.snapshot`.
    withheld
        Secrets that these snapshots contain.
    """

    round: int
    committed: int
    items: Sequence[tuple[str, Candidate]]
    outcomes: Mapping[int, ActionOutcome]
    states: Sequence[State]
    edges: Sequence[Edge]
    counters: Mapping[str, int]
    memories: Mapping[str, Any]
    loads: Mapping[str, Load]
    captures: Mapping[str, Blobs]
    snapshot_keys: AbstractSet[str]
    withheld: AbstractSet[str] = frozenset()


class Items(Sequence[tuple[str, Candidate]]):
    """Work items that are decoded on access."""

    def __init__(self, rows: Sequence[tuple[bytes, bytes]]) -> None:
        self._rows = rows

    def __len__(self) -> int:
        return len(self._rows)

    @overload
    def __getitem__(self, index: int) -> tuple[str, Candidate]: ...
    @overload
    def __getitem__(self, index: slice) -> Items: ...
    def __getitem__(self, index: int | slice) -> tuple[str, Candidate] | Items:
        if isinstance(index, slice):
            return Items(self._rows[index])
        state, candidate = self._rows[index]
        return to_text(state), unpack(candidate, Candidate)


#: SQL expression of the index in its round from an item's key.
INDEX = (1 << 32) - 1


def key_of(number: int, index: int) -> int:
    """Return the key of an item, ordered by round and canonical order."""
    return number << 32 | index


def to_bytes(text: str) -> bytes:
    """Return a text as a key of a table."""
    # URLs and names made by scripts may contain lone surrogates.
    return text.encode(errors="surrogatepass")


def to_text(raw: bytes) -> str:
    """Return the text of a key."""
    return str(raw, "utf-8", "surrogatepass")


def set_meta(name: str, value: object) -> Statement:
    """Return the statement that stores a single value."""
    return "INSERT OR REPLACE INTO meta VALUES (?, ?)", [(name, pack(value))]


def checkpoint_statements(checkpoint: Checkpoint, number: int) -> Callable[[], list[Statement]]:
    """Return a function that makes the statements of a checkpoint. Its items are those of the round `number`.

    The function runs later on the writing thread, so that states and edges are packed there.
    """
    states, edges, fates = tuple(checkpoint.states), tuple(checkpoint.edges), tuple(checkpoint.fates)
    # Copied, since they keep changing.
    metas = [set_meta("counters", checkpoint.counters), set_meta("memories", checkpoint.memories)]

    def statements() -> list[Statement]:
        of_items = [(key_of(number, f.item), pack(f)) for f in fates if f.item is not None]
        others = [(pack(f),) for f in fates if f.item is None]
        return [
            ("INSERT INTO states (state) VALUES (?)", [(pack(state),) for state in states]),
            ("INSERT INTO edges (edge) VALUES (?)", [(pack(edge),) for edge in edges]),
            ("INSERT OR REPLACE INTO item_fates VALUES (?, ?)", of_items),
            ("INSERT INTO other_fates (fate) VALUES (?)", others),
            *metas,
        ]

    return statements


def read_resumed(file: JournalFile, meta: Mapping[str, bytes]) -> Resumed:
    """Read what an interrupted run left. Snapshots stay on the disk.

    Parameters
    ----------
    file
        The open journal.
    meta
        Its single values.

    Returns
    -------
    Resumed
        Where the run stood.

    Raises
    ------
    Damaged, Unreadable
        If the file does not have the expected content.
    """
    number, committed = unpack(meta["progress"], tuple[int, int])
    range_ = (key_of(number, 0), key_of(number + 1, 0))
    rest = (key_of(number, committed), key_of(number + 1, 0))
    outcomes = file.read("SELECT key, outcome FROM outcomes WHERE key >= ? AND key < ? ORDER BY key", rest)
    return Resumed(
        round=number,
        committed=committed,
        items=Items(file.read("SELECT state, candidate FROM items WHERE key >= ? AND key < ? ORDER BY key", range_)),
        outcomes={key & INDEX: unpack(raw, ActionOutcome) for key, raw in outcomes},
        states=[unpack(raw, State) for (raw,) in file.read("SELECT state FROM states ORDER BY key")],
        edges=[unpack(raw, Edge) for (raw,) in file.read("SELECT edge FROM edges ORDER BY key")],
        counters=unpack(meta["counters"], dict[str, int]),
        memories=unpack(meta["memories"], dict[str, Any]),
        loads={to_text(url): unpack(raw, Load) for url, raw in file.read("SELECT url, load FROM loads")},
        captures={
            to_text(key): unpack(raw, tuple[str, str, str])
            for key, raw in file.read("SELECT look, blobs FROM captures")
        },
        snapshot_keys={to_text(key) for (key,) in file.read("SELECT key FROM looks")},
        withheld=set(unpack(meta["withheld"], list[str])) if "withheld" in meta else set(),
    )
