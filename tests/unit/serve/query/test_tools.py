"""What one can do on a site is listed from a store and from the command line, with the inputs."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from openapi_spec_validator import validate

from tests.small_map import SmallMap
from waygraph.cli.app import command
from waygraph.core.errors import NotFound
from waygraph.core.schemas import Filter
from waygraph.core.settings import Settings
from waygraph.index.graph import Tool, tool_id
from waygraph.index.store import Store
from waygraph.pipeline.encode.registry import create_encoder
from waygraph.pipeline.jobs.publishing.draft import described_draft, encode_map
from waygraph.sdk.local import StoreMap

MAP = SmallMap()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("tools") / "maps"
    store = Store.open(str(place), create=True)
    publish(store, MAP.tools())
    return place


def publish(store: Store, tools: Mapping[str, Tool]) -> None:
    """Publish the map with these tools, as an exploration does."""
    encoder = create_encoder(Settings().encode)
    draft = MAP.draft(encoder, store.blobs)
    encoded = encode_map(draft.graph, draft.observations.values(), (), tools.values(), encoder)
    store.publish(replace(draft, tools=tools, tool_pages=encoded.tool_pages))


@pytest.fixture(scope="module")
def maps(folder: Path) -> Iterator[StoreMap]:
    with StoreMap(folder) as source:
        yield source


@pytest.fixture
def listed(folder: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    def run(*options: str) -> str:
        command()(args=["tools", MAP.site, "--store", str(folder), *options], prog_name="x", standalone_mode=False)
        return capsys.readouterr().out

    return run


def test_tools_near_the_start_page_come_first_each_with_its_nearest_states(maps: StoreMap) -> None:
    answer = maps.tools(MAP.site)
    assert [tool.name for tool in answer.tools] == ["search", "start_return", "add card"]
    search = answer.tools[0]
    assert (search.states[0], search.state_count, search.url) == (MAP.id("home"), 4, "http://tea.example/")
    assert search.input_schema["required"] == ["q"]
    assert (search.element.kind, search.method, search.read_only) == ("submit", "GET", True)
    assert (answer.total, answer.version) == (3, 1)


def test_tools_are_found_by_state_name_and_id_and_listed_in_parts(maps: StoreMap) -> None:
    everything = maps.tools(MAP.site).tools
    assert [tool.name for tool in maps.tools(MAP.site, state=MAP.id("cards")[:8]).tools] == ["search", "add card"]
    assert [tool.name for tool in maps.tools(MAP.site, tool="start_return").tools] == ["start_return"]
    assert maps.tools(MAP.site, tool=everything[2].id[:8]).tools == everything[2:]
    assert maps.tools(MAP.site, tool="sear").tools == []
    parts = [maps.tools(MAP.site, first=first, limit=2) for first in (0, 2)]
    assert [tool for part in parts for tool in part.tools] == everything
    assert {part.total for part in parts} == {3}
    with pytest.raises(NotFound):
        maps.tools(MAP.site, state="0123456789")


def test_a_name_that_is_an_id_or_the_beginning_of_one_stands_for_no_tool(tmp_path: Path) -> None:
    meant = next(iter(MAP.tools().values()))
    names = (meant.id, meant.id[:12], "f" * 32)
    others = [replace(meant, name=name, read_only=False) for name in names]
    others = [replace(tool, id=tool_id(tool)) for tool in others]
    publish(Store.open(str(tmp_path), create=True), {tool.id: tool for tool in (*others, meant)})
    with StoreMap(tmp_path) as source:
        assert [[tool.id for tool in source.tools(MAP.site, tool=name).tools] for name in names] == [
            [meant.id], [meant.id], [],
        ]  # fmt: skip
        assert source.tools(MAP.site, tool=others[0].id).tools[0].name == meant.id
        assert source.tools(MAP.site, tool=meant.id, state=MAP.id("home"), limit=1).total == 1


def test_the_command_lists_names_inputs_and_what_may_change(listed: Callable[..., str]) -> None:
    text = listed()
    assert "search(q*)" in text
    assert "inferred, reads" in text
    assert "start_return(order*)" in text
    assert "script, may change something" in text
    assert listed("--state", "/returns").count("http://") == 2
    assert json.loads(listed("--format", "json"))["tools"][0]["name"] == "search"


def test_every_format_of_a_whole_site_is_valid(listed: Callable[..., str]) -> None:
    tools = json.loads(listed("--format", "mcp"))["tools"]
    assert [tool["name"] for tool in tools] == ["search", "start_return", "add_card"]
    validate(json.loads(listed("--format", "openapi")))
    assert 'toolname="search"' in listed("--format", "webmcp")


@pytest.mark.parametrize(
    ("query", "name", "state"),
    [
        ("send back an order", "start_return", "returns"),
        ("store my visa", "add card", "cards"),  # by the page that has it: no word is the tool's
        ("look for words", "search", "home"),
    ],
)
def test_a_tool_is_found_by_its_words_and_by_its_page(maps: StoreMap, query: str, name: str, state: str) -> None:
    found = maps.search(MAP.site, query, where=Filter(tools_only=True))
    assert (found.hits[0].tool.name, found.hits[0].node_id) == (name, MAP.id(state))
    assert len(found.hits) == 3
    assert (found.confidence, found.nothing_matches) == (None, None)


def test_a_hit_is_the_nearest_state_that_passes_the_filter(maps: StoreMap) -> None:
    where = Filter(tools_only=True, url_prefix="/account")
    hits = maps.search(None, "search words", where=where).hits
    assert {hit.tool.name: hit.node_id for hit in hits} == {
        "search": MAP.id("account"), "add card": MAP.id("cards"),
    }  # fmt: skip


def test_searches_for_pages_are_those_of_a_map_without_tools(maps: StoreMap, tmp_path: Path) -> None:
    store = Store.open(str(tmp_path / "maps"), create=True)
    store.publish(MAP.draft(create_encoder(Settings().encode), store.blobs))
    with StoreMap(tmp_path / "maps") as plain:
        for query in ("send back an order", "search", "add card", "number of the order", "start_return"):
            assert plain.search(MAP.site, query) == maps.search(MAP.site, query)
        assert plain.search(MAP.site, "search", where=Filter(tools_only=True)).hits == []


@pytest.mark.parametrize(
    ("query", "name"), [("leave this store forever", "end_membership"), ("subscribe to updates", "newsletter")]
)
def test_of_the_tools_of_one_page_the_one_that_means_the_same_comes_first(
    tmp_path: Path, query: str, name: str
) -> None:
    plain = replace(next(iter(MAP.tools().values())), title="", schema={}, target="", states=(MAP.id("account"),))
    texts = {"end_membership": "Delete all that we know of you", "newsletter": "Get our monthly mail"}
    tools = [replace(plain, name=each, description=text) for each, text in texts.items()]
    publish(Store.open(str(tmp_path), create=True), {tool_id(each): replace(each, id=tool_id(each)) for each in tools})
    with StoreMap(tmp_path) as source:
        hits = source.search(MAP.site, query, where=Filter(tools_only=True)).hits
        assert hits[0].tool.name == name


def test_a_tool_without_vectors_counts_as_the_nearest_that_says_the_same(tmp_path: Path) -> None:
    plain = replace(next(iter(MAP.tools().values())), title="", schema={}, target="")
    tools = [
        replace(plain, name=name, description=text, states=(MAP.id(state),))
        for name, text, state in (
            ("end", "Delete all that you know of me", "home"),
            ("end", "Delete all that you know of me", "cards"),
            ("mail", "Get our monthly mail", "account"),
        )
    ]
    near, far, other = (replace(tool, id=f"{n:032x}") for n, tool in enumerate(tools))
    store = Store.open(str(tmp_path), create=True)
    publish(store, {tool.id: tool for tool in (far, near, other)})
    whole = store.read(MAP.site)
    pages = {name: page for name, page in whole.tool_pages.items() if name != far.id}
    store.publish(replace(described_draft(whole, {}, whole.pages, {}), tool_pages=pages))
    with StoreMap(tmp_path) as source:
        hits = source.search(MAP.site, "leave this store forever", where=Filter(tools_only=True)).hits
    assert [hit.tool.name for hit in hits] == ["end", "end", "mail"]


def test_the_command_prints_found_tools(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["search", MAP.site, "send back an order", "--tools", "--store", str(folder), "-k", "1"]
    command()(args=words, prog_name="x", standalone_mode=False)
    assert "start_return(order*)" in capsys.readouterr().out
