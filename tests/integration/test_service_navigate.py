"""Retrieve, choose and plan in one call; reports of agents; filters and batches: the API over a small real map."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import httpx
import pytest

from tests.chat_server import serving_chat
from tests.small_map import SmallMap
from waygraph.core.errors import InvalidInput, NotFound
from waygraph.core.schemas import (
    CurrentPage,
    Filter,
    NavigateAnswer,
    NavigateRequest,
    SearchRequest,
    WalkedStep,
    problem_slug,
)
from waygraph.core.settings import Settings
from waygraph.index.store import Store
from waygraph.index.store.feedback import FeedbackLog
from waygraph.pipeline.encode.protocol import Encoder
from waygraph.pipeline.encode.registry import create_encoder
from waygraph.sdk.local import StoreMap
from waygraph.serve.http.api import create_api
from waygraph.serve.query.maps import Maps

SITE = "tea.example"
MAP = SmallMap(SITE)
CARDS = "where can I add a credit card?"


@pytest.fixture(scope="module")
def encoder() -> Encoder:
    return create_encoder(Settings().encode)


@pytest.fixture
def store(tmp_path: Path, encoder: Encoder) -> Path:
    opened = Store.open(str(tmp_path / "maps"), create=True)
    opened.publish(MAP.draft(encoder, opened.blobs))
    return tmp_path / "maps"


@pytest.fixture
def maps(store: Path) -> Iterator[StoreMap]:
    opened = StoreMap(store)
    yield opened
    opened.close()


@pytest.fixture
async def http(store: Path) -> AsyncIterator[httpx.AsyncClient]:
    settings = Settings(store=str(store))
    with Maps(settings) as served:
        served.open()
        transport = httpx.ASGITransport(create_api(settings, served))
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            yield client


def wanted(**values) -> NavigateRequest:
    return NavigateRequest.model_validate({"site": SITE, "query": CARDS, **values})


def test_one_call_finds_the_state_and_the_path_from_the_current_page(maps):
    home = MAP.nodes["home"]
    found = maps.navigate(wanted(current={"url": home.url, "structure": list(home.structure)}))
    assert found.node_id == MAP.id("cards")
    assert (found.selector, found.current.rule, found.current.node_id) == ("top1", "exact", home.id)
    assert "scores best" in found.reason
    assert found.candidates[0].node_id == found.node_id
    assert len(found.candidates) == 4
    assert found.path == maps.path(SITE, home.id, found.node_id)


def test_without_a_current_page_the_path_starts_with_loading_a_url(maps):
    found = maps.navigate(wanted())
    assert [step.action.kind for step in found.path.steps] == ["goto", "click"]
    assert found.current is None


def test_a_known_current_state_is_accepted_and_an_unknown_one_is_refused(maps):
    found = maps.navigate(wanted(current={"node_id": MAP.id("account")}, allow_goto=False))
    assert [step.action.name for step in found.path.steps] == ["Cards"]
    with pytest.raises(NotFound, match="no state"):
        maps.navigate(wanted(current={"node_id": "0" * 32}))


def test_page_of_another_site_has_no_state_and_the_path_starts_with_a_goto(maps):
    found = maps.navigate(wanted(current={"url": "https://elsewhere.example/", "structure": []}))
    assert (found.current.rule, found.current.node_id) == ("none", None)
    assert found.path.steps[0].action.kind == "goto"


def test_a_state_without_a_path_is_not_chosen_and_a_note_gives_the_reason(maps):
    found = maps.navigate(wanted(current={"node_id": MAP.id("returns")}, allow_goto=False, query="welcome to the shop"))
    assert found.candidates[0].node_id == MAP.id("home")
    assert found.node_id == found.path.target != MAP.id("home")
    assert "no path" in found.notes[0]
    assert "next candidate" in found.notes[0]


def test_if_no_candidate_has_a_path_the_choice_stays(maps):
    found = maps.navigate(wanted(allow_goto=False, query="welcome to the shop"))
    assert (found.node_id, found.path) == (MAP.id("home"), None)
    assert "No path" in found.notes[0]


def test_the_rule_selector_can_be_requested(maps):
    found = maps.navigate(wanted(select="rule"))
    assert (found.selector, found.node_id) == ("rule", MAP.id("cards"))


def test_a_language_model_that_is_not_configured_cannot_be_requested(maps):
    with pytest.raises(InvalidInput, match="no language model"):
        maps.navigate(wanted(select="llm"))


async def test_navigate_over_http_gives_the_same_answer(http, maps):
    over_http = await http.post("/v1/navigate", json={"site": SITE, "query": CARDS})
    assert over_http.json() == maps.navigate(wanted()).model_dump(mode="json")
    unknown = await http.post("/v1/navigate", json={"site": "nowhere.example", "query": CARDS})
    assert (unknown.status_code, problem_slug(unknown.json()["type"])) == (404, "not-found")
    many = await http.post("/v1/navigate", json={"site": SITE, "query": CARDS, "k": 10**6})
    assert (many.status_code, problem_slug(many.json()["type"])) == (422, "invalid-input")


async def test_a_model_that_hangs_leaves_time_to_answer_with_the_best_score(store, encoder):
    async with serving_chat(None) as model:
        llm = {"model": "m", "base_url": model.url, "timeout_seconds": 30}
        settings = Settings(store=str(store), serve={"request_seconds": 3.0, "llm": llm})
        with Maps(settings) as served:
            served.open()
            served.search(SITE, SearchRequest(query=CARDS))  # loads the encoder
            transport = httpx.ASGITransport(create_api(settings, served))
            async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as http:
                answer = await http.post("/v1/navigate", json={"site": SITE, "query": CARDS, "select": "llm"})
    assert answer.status_code == 200
    found = NavigateAnswer.model_validate_json(answer.content)
    assert (found.selector, found.node_id, found.usage.calls) == ("top1", MAP.id("cards"), 1)
    assert found.path is not None
    assert "it took too long" in found.notes[0]


def walked(outcome: str, source: str = "account", target: str = "cards") -> WalkedStep:
    (edge,) = [e for e in MAP.edges if (e.source, e.target) == (MAP.id(source), MAP.id(target)) and not e.inherited]
    return WalkedStep(source=edge.source, target=edge.target, action=edge.action.to_json(), outcome=outcome)


def test_paths_avoid_reported_steps_and_mark_them_if_there_is_no_other_path(maps, store):
    home, account, cards = MAP.id("home"), MAP.id("account"), MAP.id("cards")
    before = maps.path(SITE, home, account, allow_goto=False)
    assert [step.action.name for step in before.steps] == ["Account"]
    assert maps.feedback(SITE, [walked("gone", "home", "account")]).taken == 1
    around = maps.path(SITE, home, account, allow_goto=False)
    assert [step.action.name for step in around.steps] == ["Returns", "Account"]
    assert not any(step.suspect for step in around.steps)
    maps.feedback(SITE, [walked("drifted")])
    only = maps.path(SITE, account, cards)
    assert [(step.action.name, step.suspect) for step in only.steps] == [("Cards", True)]
    maps.feedback(SITE, [walked("ok"), walked("ok", "home", "account")])
    assert maps.path(SITE, account, cards).steps[0].suspect is False
    assert maps.path(SITE, home, account, allow_goto=False) == before
    assert [line["outcome"] for line in FeedbackLog(store).read(SITE)] == ["gone", "drifted", "ok", "ok"]


async def test_reports_over_http_are_accepted_and_checked(http):
    report = {"walked": [walked("gone").model_dump(mode="json")]}
    answer = await http.post(f"/v1/sites/{SITE}/feedback", json=report)
    assert (answer.status_code, answer.json()) == (202, {"taken": 1, "unknown": 0})
    report["walked"][0]["outcome"] = "stolen"
    assert (await http.post(f"/v1/sites/{SITE}/feedback", json=report)).status_code == 422
    assert (await http.post(f"/v1/sites/{SITE}/feedback", json={"walked": []})).status_code == 422


def test_alternatives_are_returned_on_request(maps):
    way = maps.path(SITE, MAP.id("home"), MAP.id("cards"), others=3)
    assert [len(other.steps) for other in way.others] == [2, 3, 3]
    assert [way.cost_ms, *(other.cost_ms for other in way.others)] == sorted(
        [way.cost_ms, *(other.cost_ms for other in way.others)]
    )


@pytest.mark.parametrize(
    ("where", "names"),
    [
        ({"url_prefix": f"http://{SITE}/account"}, {"account", "cards"}),
        ({"max_depth": 0}, {"home"}),
        ({"max_depth": 1}, {"home", "returns", "account"}),
        ({"max_age_days": 1}, {"home", "returns", "account", "cards"}),
        ({"max_age_days": 1e-9}, set()),
        ({"min_score": 5}, set()),
    ],
)
def test_filter_excludes_states(maps, where, names):
    found = maps.search(SITE, CARDS, 10, Filter.model_validate(where))
    assert {hit.node_id for hit in found.hits} == {MAP.id(name) for name in names}
    assert [hit.rank for hit in found.hits] == [*range(1, len(names) + 1)]


async def test_a_batch_answers_each_query_like_a_single_search(http):
    questions = [{"query": CARDS, "k": 2}, {"query": "send something back", "max_depth": 1}]
    batch = (await http.post("/v1/search/batch", json={"site": SITE, "searches": questions})).json()["answers"]
    alone = [(await http.post(f"/v1/sites/{SITE}/search", json=question)).json() for question in questions]
    assert [[hit["node_id"] for hit in each["hits"]] for each in batch] == [
        [hit["node_id"] for hit in each["hits"]] for each in alone
    ]
    bad = await http.post("/v1/search/batch", json={"site": "nowhere.example", "searches": questions})
    assert (bad.status_code, problem_slug(bad.json()["type"])) == (404, "not-found")


def test_the_current_page_may_be_empty(maps):
    assert maps.navigate(wanted(current=CurrentPage())).current is None
