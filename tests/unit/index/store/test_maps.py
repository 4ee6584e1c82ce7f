"""Published maps are read back equal, and drafts that could not be read back are refused."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.stores import DIM, SITE, draft, same_graph
from waygraph.core.errors import InvalidInput, NotFound, StoreError
from waygraph.core.urls import UrlPolicy
from waygraph.index.graph import (
    Action,
    ActionKind,
    BlockedRequest,
    Box,
    Description,
    Edge,
    InteractionGraph,
    Lead,
    Node,
    Observation,
    Segment,
)
from waygraph.index.store import url_policy_from
from waygraph.index.store.tables import edges_table, read_edges
from waygraph.index.vectors import EncodedPage


def test_published_map_is_read_back_equal(store):
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
        "merges": {}, "stood_for": 0, "leads": 0, "tools": 0,
    }  # fmt: skip
    assert manifest.url_policy == UrlPolicy("keep", ("sid",), raw=False)


LINK = Action("click", role="link", name="Orders \ud800", target="http://x/orders", frame=("/html[1]/iframe[1]",))
LEAD = Lead("f" * 32, "http://x/orders", ("Orders \ud800", "All"), "Your account", "open and closed", "home-a", LINK, 2)


def test_leads_are_read_back_with_their_vectors(store):
    page = EncodedPage(np.eye(1, DIM, dtype=np.float32), ("Orders",), ((),))
    refused = dataclasses.replace(LEAD, id="e" * 32, url="http://x/logout", names=(), refusal="hazard")
    store.publish(draft(store, leads={LEAD.id: LEAD, refused.id: refused}, lead_pages={LEAD.id: page}))
    read = store.read(SITE)
    assert read.manifest.counts.leads == 2
    assert read.leads[refused.id] == dataclasses.replace(refused, action=read.leads[refused.id].action)
    assert read.leads[LEAD.id].names == ("Orders \ufffd", "All")
    assert read.leads[LEAD.id].action.frame == LINK.frame
    assert list(read.lead_pages) == [LEAD.id]
    assert np.array_equal(read.lead_pages[LEAD.id].vectors, page.vectors)
    assert list(read.pages) == ["home-a"]


def test_descriptions_are_read_back_and_a_version_without_them_has_no_file_for_them(store):
    written = Description("One sees \ud83d orders.", ("which", "what", "where"), "model", "0" * 64, "/orders/*")
    store.publish(draft(store, descriptions={"home-a": written}))
    assert store.read(SITE).descriptions == {"home-a": dataclasses.replace(written, sentence="One sees \ufffd orders.")}
    store.publish(draft(store))
    assert store.read(SITE).descriptions == {}
    assert "descriptions.parquet" not in store.manifest(SITE).files


def test_edges_of_a_table_of_an_earlier_version_have_no_openers(store):
    edges = list(draft(store).graph.edges)
    assert any(edge.openers for edge in edges)
    table = edges_table(draft(store).graph).drop_columns("openers")
    assert list(read_edges(table)) == [dataclasses.replace(edge, openers=()) for edge in edges]


def test_version_without_leads_has_no_files_for_them(store):
    store.publish(draft(store))
    assert not [name for name in store.manifest(SITE).files if "lead" in name]


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
        st.lists(clean, max_size=2).map(tuple), st.lists(action, max_size=2).map(tuple),
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
def test_any_map_is_read_back_equal(store, parts):
    published = draft(store, **parts)
    read = store.read(SITE, store.publish(published))
    assert same_graph(read.graph, published.graph)
    assert read.observations == published.observations
    assert list(read.pages) == list(published.pages)
    for node_id, page in published.pages.items():
        assert np.array_equal(read.pages[node_id].vectors, page.vectors)
        assert (read.pages[node_id].rows, read.pages[node_id].segments) == (page.rows, page.segments)


def test_map_with_lone_surrogates_in_page_texts_can_be_published(store):
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


def test_reports_may_hold_any_json_value(store):
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


def test_vectors_are_written_as_streams_of_bytes_and_their_texts_with_a_dictionary(store):
    store.publish(draft(store))
    file = Path(store.location) / "sites" / SITE / "versions" / "1" / "vectors.parquet"
    group = pq.ParquetFile(file).metadata.row_group(0)
    columns = [group.column(number) for number in range(group.num_columns)]
    encodings = {column.path_in_schema: set(column.encodings) for column in columns}
    assert "BYTE_STREAM_SPLIT" in encodings["values.list.element"]
    assert "RLE_DICTIONARY" in encodings["rows.list.element"]


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


def test_streamed_run_file_is_written_completely_or_not_at_all(store):
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


def test_a_report_with_advice_can_be_published(store):
    store.publish(draft(store, report={"advice": ("Allow the request.",)}))
    assert store.manifest(SITE).report["advice"] == ["Allow the request."]


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
        ({"lead_pages": {LEAD.id: EncodedPage(np.ones((1, DIM)), ("r",), ((),))}}, "not one of its leads"),
        ({"leads": {"other": LEAD}}, "lead 'other'"),
        ({"descriptions": {"gone": Description("x", (), "m", "k")}}, "a description of 'gone'"),
        ({"leads": {LEAD.id: dataclasses.replace(LEAD, state="gone")}}, "does not fit the states"),
        ({"leads": {"home-a": dataclasses.replace(LEAD, id="home-a")}}, "does not fit the states"),
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


def test_current_version_is_read_without_listing_other_sites(store, monkeypatch):
    """A run asks for every site that it publishes."""
    monkeypatch.setattr(type(store.commit), "read_registers", lambda *_: pytest.fail("all sites were read"))
    assert store.current(SITE) is None
    number = store.publish(draft(store))
    assert store.current(SITE) == number
    store.remove(SITE)
    assert store.current(SITE) is None


def test_error_for_an_unknown_site_names_only_some_of_many_sites(store):
    for number in range(22):
        store.publish(draft(store, site=f"s{number:02}.example"))
    with pytest.raises(NotFound) as caught:
        store.read("other.example")
    assert "s19.example and 2 more" in caught.value.hint


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
