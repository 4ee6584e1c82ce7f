"""What does a journal hold, and how is it laid out in tables?"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Any, Literal, overload

from index.graph import Edge
from pipeline.browser.snapshot import Candidate
from pipeline.explore.journal_codec import pack, unpack
from pipeline.explore.journal_file import JournalFile, Statement
from pipeline.explore.state import Load, State
from pipeline.explore.worker import Outcome

#: Version of what is in the file. One written by another version is not resumed.
FORMAT = 3

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

Status = Literal["done", "pending", "skipped", "failed"]
Blobs = tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class Fate:
    """What became of an element or URL.

    Attributes
    ----------
    item : its place in its level when it was work to do; nothing when it was decided without (by policy, a cap).
    rule, target, xpath : as in `Skip`.
    """

    state: str
    element: str
    status: Status
    reason: str = ""
    detail: str = ""
    item: int | None = None
    rule: str = ""
    target: str = ""
    xpath: str = ""


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """What was taken into the graph. States, edges and fates: only those since the last checkpoint, in their order.

    Attributes
    ----------
    fates : of the items committed since then, those that are not simply done; and elements that never became items.
    counters, memories : as a whole. Memories are plain JSON, packed, by the name of the module that has them.
    """

    states: Sequence[State] = ()
    edges: Sequence[Edge] = ()
    fates: Sequence[Fate] = ()
    counters: Mapping[str, int] = field(default_factory=dict)
    memories: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Resumed:
    """Where the run stood: everything of the last checkpoint, and what arrived after it.

    Attributes
    ----------
    depth : the level that was under way.
    committed : its items before this index are part of the checkpoint already.
    items : all items of that level, decoded one by one when asked for.
    outcomes : of its items from `committed` on, by index; not part of the checkpoint.
    captures : of looks, by their keys.
    looks : keys of the looks that are kept, `Journal.look` returns them.
    withheld : secrets that these looks hold.
    """

    depth: int
    committed: int
    items: Sequence[tuple[str, Candidate]]
    outcomes: Mapping[int, Outcome]
    states: Sequence[State]
    edges: Sequence[Edge]
    counters: Mapping[str, int]
    memories: Mapping[str, Any]
    loads: Mapping[str, Load]
    captures: Mapping[str, Blobs]
    looks: AbstractSet[str]
    withheld: AbstractSet[str] = frozenset()


class Items(Sequence[tuple[str, Candidate]]):
    """Work items that are decoded when they are asked for."""

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


#: Selects the index in its level from an item's key.
INDEX = (1 << 32) - 1


def key_of(depth: int, index: int) -> int:
    """The key of an item: in the order of levels, in each in canonical order."""
    return depth << 32 | index


def to_bytes(text: str) -> bytes:
    """A text as a key of a table."""
    # URLs and names that scripts make need not be valid Unicode.
    return text.encode(errors="surrogatepass")


def to_text(raw: bytes) -> str:
    """Inverse of `to_bytes`."""
    return str(raw, "utf-8", "surrogatepass")


def set_meta(name: str, value: object) -> Statement:
    """Keep something that there is one of."""
    return "INSERT OR REPLACE INTO meta VALUES (?, ?)", [(name, pack(value))]


def checkpoint_statements(checkpoint: Checkpoint, depth: int) -> Callable[[], list[Statement]]:
    """What keeps a checkpoint as it is now; its items are those of the level `depth`.

    Called later, on the thread that writes: states and edges are packed there.
    """
    states, edges, fates = tuple(checkpoint.states), tuple(checkpoint.edges), tuple(checkpoint.fates)
    # These go on changing, at any depth.
    metas = [set_meta("counters", checkpoint.counters), set_meta("memories", checkpoint.memories)]

    def statements() -> list[Statement]:
        of_items = [(key_of(depth, f.item), pack(f)) for f in fates if f.item is not None]
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
    """Where the run of a file stood; looks stay on the disk.

    Raises
    ------
    Damaged, Unreadable
        When it does not hold what was written.
    """
    depth, committed = unpack(meta["progress"], tuple[int, int])
    level = (key_of(depth, 0), key_of(depth + 1, 0))
    rest = (key_of(depth, committed), key_of(depth + 1, 0))
    outcomes = file.read("SELECT key, outcome FROM outcomes WHERE key >= ? AND key < ? ORDER BY key", rest)
    return Resumed(
        depth=depth,
        committed=committed,
        items=Items(file.read("SELECT state, candidate FROM items WHERE key >= ? AND key < ? ORDER BY key", level)),
        outcomes={key & INDEX: unpack(raw, Outcome) for key, raw in outcomes},
        states=[unpack(raw, State) for (raw,) in file.read("SELECT state FROM states ORDER BY key")],
        edges=[unpack(raw, Edge) for (raw,) in file.read("SELECT edge FROM edges ORDER BY key")],
        counters=unpack(meta["counters"], dict[str, int]),
        memories=unpack(meta["memories"], dict[str, Any]),
        loads={to_text(url): unpack(raw, Load) for url, raw in file.read("SELECT url, load FROM loads")},
        captures={
            to_text(look): unpack(raw, tuple[str, str, str])
            for look, raw in file.read("SELECT look, blobs FROM captures")
        },
        looks={to_text(key) for (key,) in file.read("SELECT key FROM looks")},
        withheld=set(unpack(meta["withheld"], list[str])) if "withheld" in meta else set(),
    )
