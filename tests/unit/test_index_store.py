import hashlib
import json
import os
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from index.graph import (
    Action,
    ActionKind,
    BlockedRequest,
    Box,
    Edge,
    InteractionGraph,
    Node,
    Observation,
    Segment,
    UrlPolicy,
)
from index.store import EncoderInfo, LocalCommit, Manifest, MapDraft, Store, url_policy_from
from index.store.commit import Lease
from index.vectors import EncodedPage
from waygraph.errors import InvalidInput, NotFound, StoreError

ROOT = Path(__file__).parents[2]
SITE = "shop.example:8000"
DIM = 4


def draft(store: Store, site: str = SITE, marker: str = "a", **changes: Any) -> MapDraft:
    """A small map; `marker` tells one from another."""
    screenshot = store.blobs.put(f"screenshot of {marker}".encode())
    home = Node(f"home-{marker}", f"http://{site}/", "Home", ("h1", "h2"), 0, addressable=True, load_ms=120.5)
    menu = Node(f"menu-{marker}", f"http://{site}/", "Menü \U0001f600", (), 1, addressable=False)
    opens = Action("click", role="button", name="Menu", frame=("/html[1]/iframe[1]",), nth=2, xpath="/x", css="#m")
    edges = [
        Edge(home.id, menu.id, opens, 33.25, opens_tab=True, dialogs=("alert: hi",)),
        Edge(home.id, menu.id, Action("hover", role="button", name="Menu"), inherited=True),
        Edge(menu.id, menu.id, Action("click", name="Buy"), 1.0, blocked=(BlockedRequest("POST", "http://x/buy"),)),
    ]
    seen = Observation(
        home.id, home.url, "Home", (Segment("Welcome", "heading", Box(1, 2, 300, 40)),), screenshot=screenshot
    )
    vectors = np.linspace(-1, 1, 2 * DIM, dtype=np.float16).astype(np.float32).reshape(2, DIM)
    values: dict[str, Any] = {
        "site": site,
        "start_url": f"http://{site}/",
        "graph": InteractionGraph([home, menu], edges),
        "observations": {home.id: seen},
        "pages": {home.id: EncodedPage(vectors, ("Home", "Welcome"), ((), (0,)))},
        "encoder": EncoderInfo("text", DIM, "f1", {"boilerplate": ["Menu"]}),
        "capture": {"viewport_width": 1280},
        "report": {"marker": marker},
        "settings": {"url_policy": {"fragment": "keep", "drop_parameters": ["sid"], "raw": False}},
    }
    return MapDraft(**(values | changes))


@pytest.fixture
def store(tmp_path) -> Store:
    return Store.open(str(tmp_path / "maps"), create=True)


def same_graph(one: InteractionGraph, other: InteractionGraph) -> bool:
    return (
        list(one.nodes.values()) == list(other.nodes.values())
        and list(one.edges) == list(other.edges)
        and one.start == other.start
    )


def test_what_was_published_is_read_back_equal(store):
    published = draft(store)
    assert store.publish(published) == 1
    read = store.read(SITE)
    assert same_graph(read.graph, published.graph)
    assert read.observations == published.observations
    assert list(read.pages) == list(published.pages)
    for node_id, page in published.pages.items():
        assert np.array_equal(read.pages[node_id].vectors, page.vectors)
        assert read.pages[node_id].vectors.dtype == np.float32
        assert (read.pages[node_id].rows, read.pages[node_id].segments) == (page.rows, page.segments)
    manifest = read.manifest
    assert (manifest.site, manifest.version, manifest.start_node_id) == (SITE, 1, "home-a")
    assert manifest.encoder == published.encoder
    assert manifest.capture == {"viewport_width": 1280}
    assert manifest.counts.model_dump() == {
        "states": 2, "edges": 2, "inherited_edges": 1, "observations": 1, "pages": 1, "rows": 2, "depth": 1,
        "merges": {}, "stood_for": 0,
    }  # fmt: skip
    assert manifest.url_policy == UrlPolicy("keep", ("sid",), raw=False)


texts = st.text(st.characters(), max_size=12)


@st.composite
def any_map(draw: st.DrawFn) -> dict[str, Any]:
    ids = draw(st.lists(st.text("0123456789abcdef", min_size=1, max_size=32), min_size=1, max_size=6, unique=True))
    clean = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
    nodes = [
        Node(i, draw(clean), draw(clean), tuple(draw(st.lists(clean, max_size=3))), draw(st.integers(0, 9)),
             draw(st.booleans()), draw(st.floats(0, 1e6)))
        for i in ids
    ]  # fmt: skip
    some = st.sampled_from(ids)
    action = st.builds(
        Action, st.sampled_from(get_args(ActionKind)), url=clean, name=clean, value=clean, nth=st.integers(0, 99),
        frame=st.lists(clean, max_size=2).map(tuple),
    )  # fmt: skip
    blocked = st.lists(st.builds(BlockedRequest, clean, clean), max_size=2).map(tuple)
    edge = st.builds(
        Edge, some, some, action, st.floats(0, 1e6), st.booleans(), st.booleans(), blocked,
        st.lists(clean, max_size=2).map(tuple),
    )  # fmt: skip
    whole = st.integers(-(2**31), 2**31 - 1)
    segment = st.builds(Segment, clean, clean, st.builds(Box, whole, whole, whole, whole))
    observations = {
        i: Observation(i, draw(clean), draw(clean), tuple(draw(st.lists(segment, max_size=3))))
        for i in draw(st.sets(some))
    }
    pages = {}
    for i in draw(st.sets(some)):
        rows = draw(st.lists(clean, min_size=1, max_size=4))
        values = draw(st.lists(st.floats(-4, 4, width=16), min_size=len(rows) * DIM, max_size=len(rows) * DIM))
        spots = tuple(tuple(draw(st.lists(st.integers(0, 9), max_size=3))) for _ in rows)
        pages[i] = EncodedPage(np.array(values, np.float32).reshape(len(rows), DIM), tuple(rows), spots)
    return {
        "graph": InteractionGraph(nodes, draw(st.lists(edge, max_size=8))),
        "observations": observations,
        "pages": pages,
    }


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(any_map())
def test_any_map_survives_storage(store, parts):
    published = draft(store, **parts)
    read = store.read(SITE, store.publish(published))
    assert same_graph(read.graph, published.graph)
    assert read.observations == published.observations
    assert list(read.pages) == list(published.pages)
    for node_id, page in published.pages.items():
        assert np.array_equal(read.pages[node_id].vectors, page.vectors)
        assert (read.pages[node_id].rows, read.pages[node_id].segments) == (page.rows, page.segments)


def test_lone_surrogates_in_what_a_page_says_do_not_lose_the_map(store):
    bad = "broken \ud83d text"
    node = Node("n", "http://x/", bad, (), 0, addressable=True)
    seen = Observation("n", "http://x/", bad, (Segment(bad, "text", Box(0, 0, 1, 1)),))
    edge = Edge("n", "n", Action("click", name=bad), dialogs=(bad,))
    graph = InteractionGraph([node], [edge])
    pages = {"n": EncodedPage(np.ones((1, DIM), np.float32), (bad,), ((0,),))}
    store.publish(draft(store, graph=graph, observations={"n": seen}, pages=pages, report={"skipped": [bad]}))
    read = store.read(SITE)
    assert read.graph.nodes["n"].title == "broken \ufffd text"
    assert read.pages["n"].rows == ("broken \ufffd text",)
    assert read.manifest.report == {"skipped": [bad]}


def test_reports_may_hold_whatever_has_a_json_form(store):
    report = {"file": Path("/x"), "rate": float("inf"), "none": float("nan"), "depths": ({"states": 1},), "when": None}
    store.publish(draft(store, report=report))
    stored = {"file": "/x", "rate": None, "none": None, "depths": [{"states": 1}], "when": None}
    assert store.manifest(SITE).report == stored
    with pytest.raises(InvalidInput, match="cannot be written as JSON"):
        store.publish(draft(store, report={"thing": object()}))
    assert store.head(SITE) == 1


def test_versions_are_numbered_and_older_ones_stay_readable(store):
    for marker in "abc":
        store.publish(draft(store, marker=marker))
    assert store.versions(SITE) == [1, 2, 3]
    assert store.head(SITE) == 3
    assert [store.manifest(SITE, v).report["marker"] for v in (1, 2, 3)] == ["a", "b", "c"]
    assert store.read(SITE, 1).graph.start == "home-a"
    assert store.read(SITE).graph.start == "home-c"


def test_the_layout_is_the_documented_one(store):
    store.publish(draft(store))
    root = Path(store.location)
    assert json.loads((root / "store.json").read_text()) == {"format": "waygraph-store", "schema": 1}
    assert sorted(p.name for p in (root / "sites" / SITE / "versions" / "1").iterdir()) == [
        "edges.parquet", "manifest.json", "nodes.parquet", "vectors.parquet",
    ]  # fmt: skip
    digest = hashlib.sha256(b"screenshot of a").hexdigest()
    assert (root / "blobs" / digest[:2] / digest).read_bytes() == b"screenshot of a"
    store.write_run("run-1", "report.json", b"{}")
    assert (root / "runs" / "run-1" / "report.json").read_bytes() == b"{}"
    assert [p for p in root.rglob("*") if p.name.endswith(".tmp")] == []
    assert list((root / "sites" / SITE / "claims").iterdir()) == []


def test_a_file_of_a_run_is_written_as_a_stream_whole_or_not_at_all(store):
    def chunks(fails=False):
        yield b"first "
        if fails:
            raise ZeroDivisionError
        yield b"second"

    store.write_run_stream("run-1", "report.json", chunks())
    with pytest.raises(ZeroDivisionError):
        store.write_run_stream("run-1", "report.json", chunks(fails=True))
    assert b"".join(store.read_run_stream("run-1", "report.json")) == b"first second"
    assert [path.name for path in Path(store.location, "runs", "run-1").iterdir()] == ["report.json"]
    assert store.runs() == ["run-1"]
    with pytest.raises(NotFound):
        list(store.read_run_stream("run-2", "report.json"))


def test_a_map_without_observations_and_vectors_can_be_published(store):
    store.publish(draft(store, observations={}, pages={}))
    assert store.read(SITE).pages == {}
    assert store.read(SITE).observations == {}


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"graph": InteractionGraph()}, "has no states"),
        ({"site": "../evil"}, "not a site key"),
        ({"pages": {"x": EncodedPage(np.ones((1, DIM)), ("r",), ((),))}}, "vectors of 'x'"),
        ({"pages": {"home-a": EncodedPage(np.ones((1, 3)), ("r",), ((),))}}, "shape"),
        ({"pages": {"home-a": EncodedPage(np.ones((0, DIM)), (), ())}}, "shape"),
        ({"pages": {"home-a": EncodedPage(np.ones((1, DIM)), (), ())}}, "0 texts"),
        ({"pages": {"home-a": EncodedPage(np.full((1, DIM), np.nan), ("r",), ((),))}}, "float16"),
        ({"pages": {"home-a": EncodedPage(np.full((1, DIM), 1e6), ("r",), ((),))}}, "float16"),
        ({"observations": {"home-a": Observation("other", "", "", ())}}, "shows 'other'"),
        ({"observations": {"home-a": Observation("home-a", "", "", (), screenshot="0" * 64)}}, "blob '000"),
    ],
)
def test_a_draft_that_could_not_be_read_back_is_refused(store, changes, says):
    with pytest.raises(InvalidInput, match=says):
        store.publish(draft(store, **changes))
    assert store.sites() == []


NO_SITE_KEYS = (
    *["", ".", "..", "../x", "a/b", "a\\b", "/etc", "a\0b", "A.example", "x:", "x:999999", "a..b"],
    *["-", "a b", ".x", "x.", "é.example", "x" * 300],
)


@pytest.mark.parametrize("site", NO_SITE_KEYS)
def test_only_site_keys_become_folder_names(store, site):
    for call in (store.head, store.versions, store.manifest, store.read, store.remove):
        with pytest.raises(InvalidInput, match="not a site key"):
            call(site)


@pytest.mark.parametrize(
    "site", ["a", "localhost", "example.org", "127.0.0.1:8000", "[::1]:8000", "a_b-c.example", "xn--bcher-kva.example"]
)
def test_site_keys_of_every_kind_of_host_are_accepted(store, site):
    store.publish(draft(store, site=site))
    assert store.sites() == [site]


def test_an_unknown_site_is_answered_with_the_known_ones(store):
    store.publish(draft(store))
    with pytest.raises(NotFound, match=f"other.example.*Mapped sites: {SITE}"):
        store.read("other.example")
    with pytest.raises(NotFound, match=r"no version 7.*Published versions: 1"):
        store.read(SITE, 7)


def test_the_current_version_is_told_without_a_look_at_other_sites(store, monkeypatch):
    """A run asks for every site that it publishes."""
    monkeypatch.setattr(type(store.commit), "registers", lambda *_: pytest.fail("all sites were read"))
    assert store.current(SITE) is None
    number = store.publish(draft(store))
    assert store.current(SITE) == number
    store.remove(SITE)
    assert store.current(SITE) is None


def test_of_many_known_sites_a_message_names_the_first(store):
    for number in range(22):
        store.publish(draft(store, site=f"s{number:02}.example"))
    with pytest.raises(NotFound) as caught:
        store.read("other.example")
    assert "s19.example and 2 more" in caught.value.hint


def test_a_missing_store_is_not_made_unless_asked_for(tmp_path):
    with pytest.raises(StoreError, match="no store in"):
        Store.open(str(tmp_path / "missing"))
    with pytest.raises(StoreError, match="no store in"):
        Store.open(str(tmp_path))
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_holds_something_else_is_left_alone(tmp_path):
    (tmp_path / "thesis.txt").write_text("precious")
    for create in (True, False):
        with pytest.raises(StoreError, match="not empty and not a waygraph store"):
            Store.open(str(tmp_path), create=create)
    assert [p.name for p in tmp_path.iterdir()] == ["thesis.txt"]


def test_a_file_in_the_way_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    for location in ("file", "file/maps"):
        with pytest.raises(StoreError, match=r"file.*(Choose|use another|Check)"):
            Store.open(str(tmp_path / location), create=True)


def test_a_folder_that_cannot_be_made_is_named():
    with pytest.raises(StoreError, match="Cannot open the store /proc/waygraph"):
        Store.open("/proc/waygraph", create=True)


def test_an_unwritable_store_can_be_read_but_not_opened_for_writing():
    code = """if True:
        import os, sys
        from index.store import Store
        from waygraph.errors import StoreError

        if os.geteuid() == 0:
            os.setuid(65534)  # permissions do not bind root, who runs the tests in some containers
        print(Store.open(sys.argv[1]).sites())
        for location in (sys.argv[1], sys.argv[1] + "/new"):
            try:
                Store.open(location, create=True)
            except StoreError as error:
                print(error)
    """
    # Not `tmp_path`: the folders above it are closed to other users.
    with tempfile.TemporaryDirectory() as folder:
        store = Store.open(folder, create=True)
        store.publish(draft(store))
        for path in [Path(folder), *Path(folder).rglob("*")]:
            path.chmod(0o555)
        command = [sys.executable, "-c", code, folder]
        printed = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=True).stdout
        for path in [Path(folder), *Path(folder).rglob("*")]:
            path.chmod(0o755)
    read, existing, new = printed.splitlines()
    assert read == f"['{SITE}']"
    assert "is not writable. Change its permissions" in existing
    assert "Permission denied. Change its permissions" in new


def test_a_store_of_a_newer_schema_is_refused(tmp_path):
    (tmp_path / "store.json").write_text('{"format": "waygraph-store", "schema": 2}')
    with pytest.raises(StoreError, match=r"schema 2.*Upgrade waygraph"):
        Store.open(str(tmp_path))


@pytest.mark.parametrize("content", ["", "{", "[]", '{"format": "other"}', '{"format": "waygraph-store"}'])
def test_a_strange_marker_is_refused(tmp_path, content):
    (tmp_path / "store.json").write_text(content)
    with pytest.raises(StoreError, match=r"store\.json"):
        Store.open(str(tmp_path), create=True)


def test_places_of_other_kinds_are_refused():
    with pytest.raises(StoreError, match="Nothing is kept at gs://"):
        Store.open("gs://bucket/maps", create=True)


def test_a_file_url_is_a_local_path(tmp_path):
    Store.open(f"file://{tmp_path}/my%20maps", create=True)
    assert (tmp_path / "my maps" / "store.json").exists()


def version_file(store: Store, name: str) -> Path:
    return Path(store.location) / "sites" / SITE / "versions" / "1" / name


def republish_manifest(store: Store, change: dict[str, Any]) -> None:
    """Write a manifest with other content, and a HEAD whose hash fits it."""
    path = version_file(store, "manifest.json")
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    head = Path(store.location) / "sites" / SITE / "HEAD"
    document = json.loads(head.read_text())
    document["versions"]["1"] = hashlib.sha256(path.read_bytes()).hexdigest()
    head.write_text(json.dumps(document))


def test_a_version_of_a_newer_schema_is_refused(store):
    store.publish(draft(store))
    republish_manifest(store, {"schema": 99})
    with pytest.raises(StoreError, match=r"schema 99.*Upgrade"):
        store.read(SITE)


def test_what_a_newer_writer_adds_to_a_manifest_is_ignored(store):
    store.publish(draft(store))
    republish_manifest(store, {"favourite_colour": "blue"})
    assert store.manifest(SITE).version == 1


def test_a_manifest_without_what_a_reader_needs_is_damaged(store):
    store.publish(draft(store))
    republish_manifest(store, {"counts": None})
    with pytest.raises(StoreError, match=r"manifest\.json is damaged"):
        store.manifest(SITE)


@pytest.mark.parametrize("name", ["nodes.parquet", "edges.parquet", "vectors.parquet", "manifest.json"])
@pytest.mark.parametrize("damage", ["flip", "cut", "delete"])
def test_a_damaged_file_is_named_and_the_error_says_what_to_do(store, name, damage):
    store.publish(draft(store))
    path = version_file(store, name)
    content = bytearray(path.read_bytes())
    if damage == "delete":
        path.unlink()
    elif damage == "cut":
        path.write_bytes(content[: len(content) // 2])
    else:
        content[len(content) // 2] ^= 1
        path.write_bytes(content)
    with pytest.raises(StoreError, match=rf"{name} is damaged.*index it again"):
        store.read(SITE)


def test_a_damaged_head_harms_no_other_site_and_the_site_can_be_removed(store):
    store.publish(draft(store))
    store.publish(draft(store, site="other.example"))
    (Path(store.location) / "sites" / SITE / "HEAD").write_text("?")
    with pytest.raises(StoreError, match="HEAD is damaged"):
        store.read(SITE)
    assert store.sites() == ["other.example", SITE]
    store.remove(SITE)
    assert store.sites() == ["other.example"]
    assert store.publish(draft(store)) == 2


def test_a_foreign_folder_among_the_sites_is_not_a_site(store):
    store.publish(draft(store))
    (Path(store.location) / "sites" / ".DS_Store").write_text("")
    (Path(store.location) / "sites" / "empty.example").mkdir()
    assert store.sites() == [SITE]


def test_removing_a_site_leaves_the_others_and_never_reuses_its_numbers(store):
    store.publish(draft(store, marker="a"))
    store.publish(draft(store, marker="b"))
    store.publish(draft(store, site="other.example"))
    store.remove(SITE)
    assert store.sites() == ["other.example"]
    assert store.read("other.example").manifest.version == 1
    with pytest.raises(NotFound):
        store.read(SITE)
    with pytest.raises(NotFound):
        store.remove(SITE)
    assert list((Path(store.location) / "sites" / SITE / "versions").iterdir()) == []
    assert store.publish(draft(store, marker="c")) == 3
    assert store.versions(SITE) == [3]


def test_a_reader_who_is_overtaken_by_a_removal_is_told_so(store):
    store.publish(draft(store))
    manifest = store.manifest(SITE)
    store.remove(SITE)
    with pytest.raises(NotFound, match="removed meanwhile"):
        store._read_table(manifest, "nodes.parquet")


def abandoned_publish(store: Store, site: str = SITE) -> Path:
    """What a writer leaves that dies before it moves HEAD: a complete version and a claim that nobody holds."""
    number, lease = store._claim_number(site)
    store._write_version(draft(store, site=site), number)
    os.close(lease._descriptor)  # type: ignore[attr-defined] - what the kernel does when a process dies
    return Path(store.location) / "sites" / site / "versions" / str(number)


def test_leftovers_of_a_dead_writer_are_invisible_and_cleaned_by_the_next(store):
    store.publish(draft(store, marker="a"))
    left = abandoned_publish(store)
    assert store.versions(SITE) == [1]
    with pytest.raises(NotFound):
        store.read(SITE, 2)
    assert store.publish(draft(store, marker="b")) == 3
    assert not left.exists()
    assert store.versions(SITE) == [1, 3]
    assert list((left.parents[1] / "claims").iterdir()) == []


def test_what_a_living_writer_is_writing_is_not_touched(store):
    number, lease = store._claim_number(SITE)
    store._write_version(draft(store), number)
    assert store.publish(draft(store, marker="b")) == number + 1
    folder = Path(store.location) / "sites" / SITE / "versions" / str(number)
    assert (folder / "manifest.json").exists()
    store.remove(SITE)
    assert (folder / "manifest.json").exists()
    lease.release()


def test_a_writer_who_is_overtaken_publishes_the_version_after(store, monkeypatch):
    write = store._write_version
    overtaken = []

    def slow(late: MapDraft, number: int) -> bytes:
        manifest = write(late, number)
        if not overtaken:
            overtaken.append(number)
            assert Store.open(store.location).publish(draft(store, marker="fast")) == 2
        return manifest

    monkeypatch.setattr(store, "_write_version", slow)
    assert store.publish(draft(store, marker="slow")) == 3
    assert store.versions(SITE) == [2, 3]
    assert store.manifest(SITE).report == {"marker": "slow"}


def test_a_number_that_was_published_while_it_was_being_chosen_is_not_written_again(store, monkeypatch):
    numbers = store._numbers

    def outdated(site: str, folder: str) -> list[int]:
        found = numbers(site, folder)
        if folder == "claims" and not found:
            monkeypatch.undo()
            store.publish(draft(store, marker="fast"))
        return found

    monkeypatch.setattr(store, "_numbers", outdated)
    assert store.publish(draft(store, marker="slow")) == 2
    assert [store.read(SITE, n).manifest.report["marker"] for n in (1, 2)] == ["fast", "slow"]


def test_writers_at_once_all_publish_and_none_overwrites_another(store):
    published: dict[str, int] = {}

    def write(marker: str) -> None:
        mine = Store.open(store.location)
        published[marker] = mine.publish(draft(mine, marker=marker))

    threads = [threading.Thread(target=write, args=(f"w{i}",)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(published.values())) == 8
    assert store.versions(SITE) == sorted(published.values())
    for marker, number in published.items():
        assert store.read(SITE, number).manifest.report == {"marker": marker}


def test_a_failed_write_leaves_the_published_version(store, monkeypatch):
    store.publish(draft(store, marker="a"))

    def full(*_: object) -> bool:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(LocalCommit, "persist", full)
    with pytest.raises(StoreError, match=r"No space left.*make room"):
        store.publish(draft(store, marker="b"))
    monkeypatch.undo()
    assert store.read(SITE).manifest.report == {"marker": "a"}
    assert store.publish(draft(store, marker="c")) > 1


def test_a_blob_is_stored_once_and_verified_when_read(store):
    digest = store.blobs.put(b"picture")
    assert store.blobs.put(b"picture") == digest == hashlib.sha256(b"picture").hexdigest()
    assert store.blobs.get(digest) == b"picture"
    assert store.blobs.has(digest)
    path = Path(store.location) / "blobs" / digest[:2] / digest
    path.write_bytes(b"pictura")
    with pytest.raises(StoreError, match="does not match its name"):
        store.blobs.get(digest)
    store.blobs.put(b"picture")
    assert store.blobs.get(digest) == b"picture"
    assert store.blobs.get(store.blobs.put(b"")) == b""


@pytest.mark.parametrize("digest", ["", "../../etc/passwd", "0" * 63, "G" * 64, "0" * 64])
def test_only_hashes_name_blobs(store, digest):
    assert not store.blobs.has(digest)
    with pytest.raises(NotFound, match="no blob"):
        store.blobs.get(digest)


@pytest.mark.parametrize(
    ("run_id", "name"), [("..", "x"), ("a/b", "x"), ("run", "../x"), ("", "x"), ("run", ".hidden")]
)
def test_run_files_stay_inside_their_folder(store, run_id, name):
    with pytest.raises(InvalidInput, match="cannot name a run"):
        store.write_run(run_id, name, b"")


def test_a_swap_happens_only_from_the_expected_content(tmp_path):
    commit = LocalCommit(tmp_path)
    assert not commit.swap("a/HEAD", b"1", b"2")
    assert commit.swap("a/HEAD", None, b"1")
    assert not commit.swap("a/HEAD", None, b"2")
    assert not commit.swap("a/HEAD", b"0", b"2")
    assert commit.swap("a/HEAD", b"1", b"2")
    assert (tmp_path / "a" / "HEAD").read_bytes() == b"2"


def test_a_claim_has_one_holder_until_it_is_released(tmp_path):
    commit = LocalCommit(tmp_path)
    lease: Lease | None = commit.claim("claims/1")
    assert lease is not None
    assert commit.claim("claims/1") is None
    assert commit.take_over("claims/1") is None
    assert commit.take_over("claims/2") is None
    lease.release()
    again = commit.claim("claims/1")
    assert again is not None
    again.release()
    assert list((tmp_path / "claims").iterdir()) == []


@pytest.mark.parametrize(
    ("stored", "policy"),
    [
        ({}, UrlPolicy()),
        ({"fragment": "drop", "drop_parameters": ["a"], "raw_urls": True}, UrlPolicy("drop", ("a",), raw=True)),
        ({"explore": {"fragment": "keep"}}, UrlPolicy("keep")),
        ({"url_policy": {"raw": True}}, UrlPolicy(raw=True)),
    ],
)
def test_the_url_policy_is_read_from_the_settings(stored, policy):
    assert url_policy_from(stored) == policy


def test_manifests_name_their_schema_in_json(store):
    store.publish(draft(store))
    document = json.loads(version_file(store, "manifest.json").read_text())
    assert document["schema"] == 1
    assert Manifest.model_validate(document) == store.manifest(SITE)
