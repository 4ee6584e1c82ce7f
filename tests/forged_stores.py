"""Forged versions of one small site: each is what a writer of the store could put there, with hashes that fit."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tests.stores import DIM, draft
from waygraph.index.graph import Action, Description, Evidence, Lead, Merge, Recognition, Tool, lead_id
from waygraph.index.store import MapDraft, Store
from waygraph.index.vectors import EncodedPage

BAD, GOOD = "bad.example", "good.example"

Rows = list[dict[str, Any]]


def rich_draft(store: Store, site: str, marker: str = "a") -> MapDraft:
    """A small map with every kind of table."""
    plain = draft(store, site=site, marker=marker)
    home, menu = plain.graph.nodes
    url = f"http://{site}/returns"
    lead = Lead(lead_id(url), url, ("Returns",), "Help", "", home, Action("click", role="link", name="Returns"), 1)
    page = next(iter(plain.pages.values()))
    tool = Tool("0" * 32, "search", "Search", "", {}, "inferred", (menu,), f"http://{site}", element=Action("submit"))
    return draft(
        store,
        site=site,
        marker=marker,
        recognition=Recognition(
            merges={"other-snapshot": Merge(home, "other-snapshot", "reload", f"http://{site}/?s=1")},
            stands_for={menu: 2},
            evidence={menu: Evidence({"shown": 1}, {"hidden": 2}, ("feature",), ("element",))},
        ),
        lineage={"earlier": home, "gone": ""},
        leads={lead.id: lead},
        lead_pages={lead.id: EncodedPage(page.vectors[:1], ("Returns",), ((),))},
        descriptions={home: Description("The start page.", ("where is the start",), "model", "key")},
        tools={tool.id: tool},
        tool_pages={tool.id: EncodedPage(page.vectors[:1], ("Search",), ((),))},
    )


class Forger:
    """Rewrites the newest version of a site, with the hashes that a reader compares.

    Parameters
    ----------
    location
        Folder of the store.
    site
        Key of the site.
    """

    def __init__(self, location: str, site: str = BAD) -> None:
        self.site = Path(location) / "sites" / site
        self.head = self.site / "HEAD"
        self.version = max((self.site / "versions").iterdir(), key=lambda folder: int(folder.name))
        self.manifest = self.version / "manifest.json"

    def edit_manifest(self, change: Callable[[dict[str, Any]], object]) -> None:
        """Change the manifest."""
        document = json.loads(self.manifest.read_text())
        change(document)
        self.write_manifest(json.dumps(document))

    def write_manifest(self, text: str) -> None:
        """Write another manifest, and its hash into `HEAD`."""
        self.manifest.write_text(text)
        digest = hashlib.sha256(text.encode()).hexdigest()
        self.edit_head(lambda head: head["versions"].update({self.version.name: digest}))

    def edit_head(self, change: Callable[[dict[str, Any]], object]) -> None:
        """Change `HEAD`."""
        document = json.loads(self.head.read_text())
        change(document)
        self.head.write_text(json.dumps(document))

    def write_table(self, name: str, content: pa.Table | bytes) -> None:
        """Write another table, and its hash into the manifest."""
        path = self.version / f"{name}.parquet"
        if isinstance(content, bytes):
            path.write_bytes(content)
        else:
            pq.write_table(content, path)
        entry = {"sha256": hashlib.sha256(path.read_bytes()).hexdigest(), "bytes": path.stat().st_size}
        self.edit_manifest(lambda manifest: manifest["files"].update({path.name: entry}))

    def edit_table(self, name: str, change: Callable[[pa.Table], pa.Table]) -> None:
        """Change a table as a whole."""
        self.write_table(name, change(pq.read_table(self.version / f"{name}.parquet")))

    def edit_rows(self, name: str, change: Callable[[Rows], object]) -> None:
        """Change the rows of a table."""

        def changed(table: pa.Table) -> pa.Table:
            rows = table.to_pylist(maps_as_pydicts="strict")
            change(rows)
            return pa.Table.from_pylist(rows, schema=table.schema)

        self.edit_table(name, changed)

    def replace_head(self, put: Callable[[Path], object]) -> None:
        """Put something else in place of `HEAD`."""
        self.head.unlink()
        put(self.head)


@dataclass(frozen=True)
class Forgery:
    """One way to forge a version.

    Attributes
    ----------
    name
        Its name.
    reason
        The kind of problem that is reported.
    forge
        Forges the newest version of a site.
    """

    name: str
    reason: str
    forge: Callable[[Forger], object]

    def __str__(self) -> str:
        return self.name


def _manifest(name: str, change: Callable[[dict[str, Any]], object], reason: str = "manifest") -> Forgery:
    return Forgery(f"manifest: {name}", reason, lambda forger: forger.edit_manifest(change))


def _text(name: str, text: str, reason: str = "manifest") -> Forgery:
    return Forgery(f"manifest: {name}", reason, lambda forger: forger.write_manifest(text))


def _rows(table: str, name: str, change: Callable[[Rows], object]) -> Forgery:
    return Forgery(f"{table}: {name}", "table", lambda forger: forger.edit_rows(table, change))


def _table(table: str, name: str, change: Callable[[pa.Table], pa.Table]) -> Forgery:
    return Forgery(f"{table}: {name}", "table", lambda forger: forger.edit_table(table, change))


def _head(name: str, change: Callable[[dict[str, Any]], object]) -> Forgery:
    return Forgery(f"HEAD: {name}", "head", lambda forger: forger.edit_head(change))


def _put(name: str, put: Callable[[Path], object], reason: str) -> Forgery:
    return Forgery(f"HEAD: {name}", reason, lambda forger: forger.replace_head(put))


def _file_named(name: str) -> Forgery:
    entry = {"sha256": "0" * 64, "bytes": 1}
    return _manifest(f"a file is named {name!r}", lambda document: document["files"].update({name: entry}))


def _set(path: str, value: object) -> Callable[[Any], None]:
    """Return a function that sets a value in nested objects, as `counts.states`."""

    def change(document: Any) -> None:
        *parents, last = path.split(".")
        for each in parents:
            document = document[int(each) if each.isdecimal() else each]
        document[int(last) if last.isdecimal() else last] = value

    return change


def _retyped(column: str, kind: pa.DataType) -> Callable[[pa.Table], pa.Table]:
    return lambda table: table.set_column(
        table.column_names.index(column), column, pa.nulls(len(table), pa.null()).cast(kind)
    )


def _nested(levels: int) -> Any:
    value: Any = "the end"
    for _ in range(levels):
        value = [value]
    return value


def _forged_vectors(first: float) -> Callable[[Rows], None]:
    def change(rows: Rows) -> None:
        rows[0]["values"] = [first, *rows[0]["values"][1:]]

    return change


def _loop(path: Path) -> None:
    path.symlink_to(path.name)


#: Names that would be a path outside of the version's folder, another file of the store, or no file name at all.
FILE_NAMES = (
    "../../../../outside.parquet", "..", "/etc/outside.parquet", "a/b.parquet", "manifest.json", "HEAD", "",
    "nodes.parquet\x00", "..\\outside.parquet", "n" * 300 + ".parquet",
)  # fmt: skip

FORGERIES = (
    *map(_file_named, FILE_NAMES),
    _manifest("another site", _set("site", GOOD)),
    _manifest("a site that is a path", _set("site", "../../outside")),
    _manifest("another version", _set("version", 7)),
    _manifest("a version that is a path", _set("version", "../1")),
    _manifest("a hash that is a path", _set("files", {"nodes.parquet": {"sha256": "../x", "bytes": 1}})),
    _manifest("negative counts", _set("counts.states", -1)),
    _manifest("other counts", _set("counts.states", 3), "table"),
    _manifest("an enormous count", _set("counts.rows", 10**30)),
    _manifest("vectors of no columns", _set("encoder.dim", 0)),
    _manifest("vectors of other columns", _set("encoder.dim", 3), "table"),
    _manifest("an encoder that is a list", _set("encoder", [])),
    _manifest("a time that is none", _set("created", "yesterday")),
    _manifest("a time without zone", _set("created", "2026-01-01T00:00:00")),
    _manifest("a start that is no state", _set("start_node_id", "nowhere"), "table"),
    _manifest("a start that is a path", _set("start_node_id", "../x")),
    _manifest("a report that is a list", _set("report", [])),
    _manifest("a nested report", _set("report", {"advice": _nested(70)})),
    _manifest("a URL policy that is a list", _set("settings", {"url_policy": [1]})),
    _manifest("a URL policy of another kind", _set("settings", {"url_policy": {"fragment": {}}})),
    _manifest("parameters that are numbers", _set("settings", {"url_policy": {"drop_parameters": [1]}})),
    _manifest("a blob that is a path", _set("report", {"fates": "../../x"})),
    _manifest("a refresh that is a list", _set("report", {"refresh": [1]})),
    _manifest("advice that is a number", _set("report", {"advice": 5})),
    _manifest("an infinite number", _set("report", {"seconds": float("inf")})),
    _manifest("an undefined number", _set("report", {"seconds": float("nan")})),
    _manifest("a large number", _set("report", {"seconds": 10**400})),
    _text("nested beyond the parser", "[" * 100_000),
    _text("a number of many digits", '{"schema": 1%s}' % ("0" * 5_000)),
    _text("empty", ""),
    _text("no JSON", "\x00\x01"),
    _text("a newer schema", '{"schema": 99}', "newer_schema"),
    Forgery("manifest: gone", "missing", lambda forger: forger.manifest.unlink()),
    Forgery("manifest: not the one of HEAD", "checksum", lambda forger: forger.manifest.write_text("{}")),
    Forgery("nodes: no Parquet", "table", lambda forger: forger.write_table("nodes", b"PAR1 it is not")),
    Forgery("nodes: empty file", "table", lambda forger: forger.write_table("nodes", b"")),
    Forgery("nodes: gone", "missing", lambda forger: (forger.version / "nodes.parquet").unlink()),
    _table("nodes", "no rows", lambda table: table.slice(0, 0)),
    _table("nodes", "a column less", lambda table: table.drop_columns(["depth"])),
    _table("nodes", "a column twice", lambda table: table.append_column("id", table.column("id"))),
    _table("nodes", "numbers as texts", _retyped("depth", pa.string())),
    _table("nodes", "structures of numbers", _retyped("structure", pa.list_(pa.int64()))),
    _table("nodes", "bytes as texts", lambda table: table.set_column(1, "url", table.column("url").cast(pa.binary()))),
    _rows("nodes", "a null id", _set("1.id", None)),
    _rows("nodes", "a null URL", _set("0.url", None)),
    _rows("nodes", "a null in a structure", _set("0.structure", [None])),
    _rows("nodes", "an id twice", _set("1.id", "home-a")),
    _rows("nodes", "an id that is a path", _set("1.id", "../../x")),
    _rows("nodes", "an empty id", _set("1.id", "")),
    _rows("nodes", "a negative depth", _set("1.depth", -1)),
    _rows("nodes", "an undefined duration", _set("0.load_ms", float("nan"))),
    _rows("nodes", "a screenshot that is a path", _set("0.observation.screenshot", "../../../etc/hostname")),
    _rows("nodes", "a segment without text", _set("0.observation.segments.0.text", None)),
    _rows("edges", "a target that is no state", _set("0.target", "nowhere")),
    _rows("edges", "a source that is no state", _set("0.source", "nowhere")),
    _rows("nodes", "an endless duration", _set("0.load_ms", 1e300)),
    _rows("edges", "a cost beyond sums", _set("0.cost_ms", 1e308)),
    _rows("edges", "an infinite cost", _set("0.cost_ms", float("inf"))),
    _rows("edges", "a negative cost", _set("0.cost_ms", -1.0)),
    _rows("edges", "an unknown action", _set("0.action.kind", "explode")),
    _rows("edges", "an unknown opener", _set("1.openers.0.kind", "explode")),
    _rows("edges", "no action", _set("0.action", None)),
    _rows("edges", "a negative position", _set("0.action.nth", -1)),
    _rows("edges", "an edge more", lambda rows: rows.append(rows[0])),
    _table("edges", "an action of numbers", _retyped("action", pa.struct([("kind", pa.int64())]))),
    _rows("vectors", "an undefined value", _forged_vectors(float("nan"))),
    _rows("vectors", "an infinite value", _forged_vectors(float("inf"))),
    _rows("vectors", "a value less", lambda rows: rows[0]["values"].pop()),
    _rows("vectors", "no values", _set("0.values", [])),
    _rows("vectors", "a null", _set("0.values", [None] * 2 * DIM)),
    _rows("vectors", "a text less", lambda rows: rows[0]["rows"].pop()),
    _rows("vectors", "a negative segment", _set("0.segments", [[-1], []])),
    _rows("vectors", "of no state", _set("0.node_id", "nowhere")),
    _rows("vectors", "a state twice", lambda rows: rows.append(rows[0])),
    _table("vectors", "of another precision", _retyped("values", pa.list_(pa.float32()))),
    _rows("recognition", "of no state", _set("0.id", "nowhere")),
    _rows("recognition", "a count of nothing", _set("0.stands_for", 0)),
    _rows("recognition", "an id that is a path", _set("0.merged.0.id", "../x")),
    _table("recognition", "features of numbers", _retyped("evidence", pa.int64())),
    _rows("lineage", "an earlier state that becomes itself", _set("0.successor", "earlier")),
    _rows("lineage", "a null", _set("0.successor", None)),
    _table("lineage", "an earlier state twice", lambda table: pa.concat_tables([table, table])),
    _rows("leads", "in no state", _set("0.state", "nowhere")),
    _rows("leads", "the id of a state", _set("0.id", "home-a")),
    _rows("leads", "an unknown action", _set("0.action.kind", "explode")),
    _rows("leads", "no names", _set("0.names", None)),
    _rows("lead_vectors", "an infinite value", _forged_vectors(float("-inf"))),
    _rows("lead_vectors", "of no lead", _set("0.node_id", "home-a")),
    _rows("tools", "of no state", _set("0.states", ["nowhere"])),
    _rows("tools", "a schema that is no object", _set("0.schema", "[]")),
    _rows("tool_vectors", "an infinite value", _forged_vectors(float("inf"))),
    _rows("tool_vectors", "of no tool", _set("0.node_id", "home-a")),
    _rows("descriptions", "of no state", _set("0.node_id", "nowhere")),
    _rows("descriptions", "no questions", _set("0.questions", None)),
    _head("a version that is not there", lambda head: head.update(current=9)),
    _head("an enormous number", lambda head: head.update(current=10**40, versions={str(10**40): "0" * 64})),
    _head("a negative number", lambda head: head.update(current=-1, versions={"-1": "0" * 64})),
    _head("a number that is a path", lambda head: head.update(versions={"../../x": "0" * 64})),
    _head("a hash that is a path", lambda head: head.update(versions={"1": "../../x"})),
    _head("versions that are a list", lambda head: head.update(versions=[1])),
    _put("garbage", lambda path: path.write_bytes(b"\xff\xfe\x00"), "head"),
    _put("empty", lambda path: path.touch(), "head"),
    _put("nested beyond the parser", lambda path: path.write_text('{"schema":' * 50_000), "head"),
    _put("a folder", lambda path: path.mkdir(), "unreadable"),
    _put("a pipe", os.mkfifo, "unreadable"),
    _put("a link to itself", _loop, "unreadable"),
    _put("a link to a device", lambda path: path.symlink_to("/dev/zero"), "unreadable"),
    Forgery("manifest: a pipe", "unreadable", lambda forger: (forger.manifest.unlink(), os.mkfifo(forger.manifest))),
    Forgery("nodes: a pipe", "unreadable", lambda forger: _piped(forger.version / "nodes.parquet")),
    Forgery("nodes: a folder", "unreadable", lambda forger: _foldered(forger.version / "nodes.parquet")),
)  # fmt: skip


def _piped(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def _foldered(path: Path) -> None:
    path.unlink()
    path.mkdir()


def make_store(location: str, *sites: str) -> Store:
    """Make a store with one version of each site."""
    store = Store.open(location, create=True)
    for site in sites:
        store.publish(rich_draft(store, site))
    return store


def forged(location: str, forgery: Forgery, site: str = BAD) -> None:
    """Forge the newest version of a site."""
    forgery.forge(Forger(location, site))
