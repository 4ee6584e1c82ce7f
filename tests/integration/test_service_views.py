"""Answers of the service that show whole maps, and the page that shows them, without Ray."""

from __future__ import annotations

import io
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest
from PIL import Image

from tests.small_map import IMAGE, SmallMap
from waygraph.core.settings import Settings
from waygraph.core.view_schemas import INHERITED, MAX_OUTCOMES, STATE_CHANGING
from waygraph.index.graph import BlockedRequest, InteractionGraph, Lead, lead_id
from waygraph.index.store import Store
from waygraph.index.store.element_outcomes import write_element_outcomes
from waygraph.pipeline.encode.protocol import Encoder
from waygraph.pipeline.encode.registry import create_encoder
from waygraph.serve.http.api import create_api
from waygraph.serve.query.maps import Maps

TEA, PLAIN = SmallMap("tea.example"), SmallMap("plain.example")
HOME, CARDS = TEA.id("home"), TEA.id("cards")
HTML = b"<!doctype html><script>alert(1)</script>"
HOSTILE = "<script>alert(1)</script> \u202egnp.exe \ud800"


@pytest.fixture(scope="module")
def encoder() -> Encoder:
    return create_encoder(Settings().encode)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory, encoder: Encoder) -> Path:
    """A store with two sites: one as runs publish it, and one with screenshots that are none and a plain report."""
    opened = Store.open(str(tmp_path_factory.mktemp("views") / "maps"), create=True)
    opened.publish(PLAIN.draft(encoder, opened.blobs, without=("returns",)))
    opened.publish(PLAIN.draft(encoder, opened.blobs))
    draft = TEA.draft(encoder, opened.blobs)
    written = io.BytesIO()
    Image.new("RGB", (1280, 800), "teal").save(written, "JPEG")
    image, dom = opened.blobs.put(written.getvalue()), opened.blobs.put(HTML)
    home = replace(draft.observations[HOME], screenshot=image, dom=dom)
    skipped = {"state": HOME, "status": "skipped", "reason": "external", "detail": HOSTILE, "rule": "scope"}
    rows = [{**skipped, "element": f'click link "{n}"'} for n in range(MAX_OUTCOMES + 2)]
    rows += [{"state": HOME, "element": "done", "status": "done"}, {**skipped, "state": CARDS, "element": HOSTILE}]
    pay = (BlockedRequest("POST", "http://tea.example/pay"),)
    edges = [replace(edge, blocked=pay) if edge.action.name == "Cards" else edge for edge in TEA.edges]
    news = "http://tea.example/news"
    lead = Lead(lead_id(news), news, ("News",), "", "", HOME, TEA.edges[0].action, 1)
    opened.publish(
        replace(
            draft,
            graph=InteractionGraph(draft.graph.nodes.values(), edges),
            observations={**draft.observations, HOME: home},
            report={
                "seconds": 61.5,
                "stopped_by": "wall_time",
                "skips": [{"node_id": HOME}] * 3,
                "failures": [],
                "pending": 7,
                "fates": opened.blobs.put(write_element_outcomes(rows)),
            },
            partial=True,
            leads={lead.id: lead},
        )
    )
    return Path(opened.location)


@pytest.fixture
async def http(store: Path) -> AsyncIterator[httpx.AsyncClient]:
    settings = Settings(store=str(store))
    with Maps(settings) as maps:
        maps.open()
        transport = httpx.ASGITransport(create_api(settings, maps))
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            yield client


async def answer(http: httpx.AsyncClient, path: str) -> Any:
    response = await http.get(path)
    assert response.status_code == 200, response.text
    return response.json()


async def test_cards_hold_the_size_of_each_site_and_the_outcome_of_its_run(http: httpx.AsyncClient) -> None:
    plain, tea = await answer(http, "/v1/cards")
    listed = await answer(http, "/v1/sites")
    for card, summary in zip((plain, tea), listed, strict=True):
        assert summary.items() <= card.items()
    assert (tea["partial"], tea["stopped_by"], tea["seconds"], tea["leads"]) == (True, "wall_time", 61.5, 1)
    assert tea["outcomes"] == {"skipped": 3, "failed": 0, "pending": 7}
    assert (plain["outcomes"], plain["stopped_by"]) == ({}, "")
    assert tea["start_node_id"] == HOME
    assert await answer(http, "/v1/cards?site=tea.example") == [tea]
    assert await answer(http, "/v1/cards?site=nowhere.example") == []


async def test_the_graph_has_all_states_and_edges_in_columns(http: httpx.AsyncClient) -> None:
    response = await http.get("/v1/sites/tea.example/graph")
    graph = response.json()
    states, edges = graph["states"], graph["edges"]
    assert states["id"][graph["start"]] == HOME
    assert {len(column) for column in states.values()} == {4}
    assert {len(column) for column in edges.values()} == {len(TEA.edges)}
    ends = {
        (states["id"][source], states["id"][target], flags)
        for source, target, flags in zip(edges["source"], edges["target"], edges["flags"], strict=True)
    }
    expected = {(e.source, e.target, INHERITED * e.inherited + STATE_CHANGING * (e.target == CARDS)) for e in TEA.edges}
    assert ends == expected
    assert [graph["kinds"][kind] for kind in edges["kind"]] == ["click"] * len(TEA.edges)
    assert dict(zip(states["id"], states["skipped"], strict=True))[HOME] == MAX_OUTCOMES + 2
    unchanged = await http.get("/v1/sites/tea.example/graph", headers={"if-none-match": response.headers["etag"]})
    assert (unchanged.status_code, unchanged.content) == (304, b"")


async def test_elements_have_boxes_targets_and_reasons(http: httpx.AsyncClient) -> None:
    found = await answer(http, f"/v1/sites/tea.example/nodes/{HOME[:8]}/elements")
    assert found["node_id"] == HOME
    by_name = {element["action"]["name"]: element for element in found["elements"]}
    assert by_name["Returns"]["expected_node_id"] == TEA.id("returns")
    assert by_name["Returns"]["box"] == {"x": 8, "y": 40, "width": 300, "height": 30}
    assert (len(found["outcomes"]), found["outcomes_total"]) == (MAX_OUTCOMES, MAX_OUTCOMES + 2)
    assert found["outcomes"][0]["reason"] == "external"
    assert [lead["title"] for lead in found["leads"]] == ["News"]
    account = await answer(http, f"/v1/sites/tea.example/nodes/{TEA.id('account')}/elements")
    assert account["elements"][0]["sends"] == ["POST http://tea.example/pay"]
    cards = await answer(http, f"/v1/sites/tea.example/nodes/{CARDS}/elements")
    assert cards["outcomes"][0]["element"] == HOSTILE.replace("\ud800", "\ufffd")
    lead = await answer(http, f"/v1/sites/tea.example/nodes/{lead_id('http://tea.example/news')}/elements")
    assert (lead["elements"], lead["outcomes"]) == ([], [])


async def test_captures_are_files_of_text_and_missing_ones_are_named(http: httpx.AsyncClient) -> None:
    node = f"/v1/sites/tea.example/nodes/{HOME}"
    assert (await answer(http, f"{node}/elements"))["captures"] == ["dom"]
    found = await http.get(f"{node}/captures/dom")
    assert (found.status_code, found.content) == (200, HTML)
    assert found.headers["content-type"] == "text/plain; charset=utf-8"
    assert found.headers["content-disposition"] == f'attachment; filename="{HOME[:8]}.html.txt"'
    assert found.headers["x-content-type-options"] == "nosniff"
    missing = await http.get(f"{node}/captures/aria")
    assert (missing.status_code, missing.json()["hint"]) == (404, "It was recorded without one.")
    assert (await http.get(f"{node}/captures/pdf")).status_code == 422
    assert (await answer(http, "/v1/progress")) == []


async def test_a_map_without_a_table_of_outcomes_shows_those_of_its_report(http: httpx.AsyncClient) -> None:
    found = await answer(http, f"/v1/sites/plain.example/nodes/{PLAIN.id('home')}/elements")
    assert (found["outcomes"], found["outcomes_total"]) == ([], 0)
    assert (await answer(http, "/v1/sites/plain.example/graph"))["states"]["skipped"] == [0, 0, 0, 0]


async def test_changes_name_states_with_screenshots_before_and_after(http: httpx.AsyncClient) -> None:
    response = await http.get("/v1/sites/plain.example/changes")
    changes = response.json()
    assert (changes["from_version"], changes["to_version"], changes["versions"]) == (1, 2, [1, 2])
    assert changes["counts"]["states"] == {"added": 1, "match": 3}
    (state,) = changes["states"]
    returns = PLAIN.id("returns")
    assert (state["verdict"], state["before"], state["after"]) == ("added", "", returns)
    assert changes["changed_ids"] == [returns]
    assert state["screenshot_before"] is None
    image = await http.get(state["screenshot_after"])
    assert (image.content, image.headers["cache-control"]) == (IMAGE, "private, no-cache")
    assert (await http.get(state["screenshot_after"], headers={"if-none-match": image.headers["etag"]})).content == b""
    (action,) = changes["actions"]
    assert (action["verdict"], action["action"]["name"], changes["actions_total"]) == ("added", "Returns", 1)
    unchanged = await http.get("/v1/sites/plain.example/changes", headers={"if-none-match": response.headers["etag"]})
    assert (unchanged.status_code, unchanged.content) == (304, b"")

    back = await answer(http, "/v1/sites/plain.example/changes?from=2&to=1")
    assert (back["counts"]["states"], back["changed_ids"]) == ({"gone": 1, "match": 3}, [])
    assert [broken["node_id"] for broken in back["broken"]] == [returns]
    assert (await http.get(back["states"][0]["screenshot_before"])).content == IMAGE


@pytest.mark.parametrize(
    ("query", "status", "shown"),
    [
        ("/v1/sites/plain.example/changes?from=2&to=2", 422, "Both versions are 2"),
        ("/v1/sites/plain.example/changes?from=9", 404, "has no version 9"),
        ("/v1/sites/tea.example/changes", 404, "has no version before 1"),
        ("/v1/sites/nowhere.example/changes", 404, "nowhere.example"),
        (f"/v1/sites/plain.example/versions/1/nodes/{PLAIN.id('returns')}/screenshot", 404, "has no screenshot"),
        (f"/v1/sites/plain.example/versions/9/nodes/{PLAIN.id('home')}/screenshot", 404, "has no version 9"),
    ],
)
async def test_versions_that_cannot_be_compared_are_problems(
    http: httpx.AsyncClient, query: str, status: int, shown: str
) -> None:
    response = await http.get(query)
    assert (response.status_code, shown in response.json()["detail"]) == (status, True), response.text


async def test_thumbnails_are_small_images_that_are_cached_by_content(http: httpx.AsyncClient) -> None:
    shot = (await answer(http, "/v1/sites/tea.example/graph"))["states"]["screenshot"][0]
    path = f"/v1/sites/tea.example/nodes/{HOME}/thumbnail"
    with_hash, of_site = await http.get(f"{path}?v={shot}"), await http.get("/v1/sites/tea.example/thumbnail")
    assert "immutable" in with_hash.headers["cache-control"]
    assert of_site.headers["cache-control"] == (await http.get(path)).headers["cache-control"] == "private, no-cache"
    assert of_site.content == with_hash.content
    assert Image.open(io.BytesIO(of_site.content)).format == "JPEG"
    again = await http.get(path, headers={"if-none-match": of_site.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")


@pytest.mark.parametrize(
    "path",
    [
        "/v1/sites/plain.example/thumbnail",  # bytes that are no image
        f"/v1/sites/plain.example/nodes/{PLAIN.id('home')}/thumbnail",
        f"/v1/sites/tea.example/nodes/{CARDS}/thumbnail",  # recorded without a screenshot
        "/v1/sites/nowhere.example/graph",
        "/v1/sites/nowhere.example/thumbnail",
        "/v1/sites/tea.example/nodes/ffffffff/elements",
        "/ui/other.js",
    ],
)
async def test_what_is_not_there_is_a_problem(http: httpx.AsyncClient, path: str) -> None:
    response = await http.get(path)
    assert response.status_code == 404
    assert response.headers["content-type"] == "application/problem+json"


async def test_the_page_and_its_files_need_no_key_and_have_a_policy(store: Path) -> None:
    settings = Settings(store=str(store), serve={"api_keys": ["a-key-of-these-tests"]})
    with Maps(settings) as maps:
        maps.open()
        transport = httpx.ASGITransport(create_api(settings, maps))
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as http:
            page = await http.get("/")
            assert page.headers["content-type"] == "text/html; charset=utf-8"
            (policy,) = page.headers.get_list("content-security-policy")
            directives = dict(each.strip().split(" ", 1) for each in policy.split(";"))
            assert directives["default-src"] == directives["frame-ancestors"] == "'none'"
            assert directives["script-src"] == directives["style-src"] == "'self'"
            assert not {"'unsafe-inline'", "'unsafe-eval'", "*"} & set(policy.split())
            assert page.headers["x-content-type-options"] == "nosniff"
            unchanged = await http.get("/", headers={"if-none-match": page.headers["etag"]})
            assert (unchanged.status_code, unchanged.content) == (304, b"")
            for address in page.text.split('"'):
                if address.startswith("./ui/"):
                    assert "immutable" in (await http.get(address.removeprefix("."))).headers["cache-control"]
            assert (await http.get("/v1/cards")).status_code == 401
