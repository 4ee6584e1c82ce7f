"""Descriptions of pages by a scripted model: what is asked, kept, searched, and never paid for twice."""

import asyncio
import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.described_map import CARDS_TEXTS, SITE, reply, reply_for, script, small_store
from tests.small_map import STATES
from waygraph.agents.describe.journal import ReplyJournal
from waygraph.agents.describe.plan import Per, estimate, plan_descriptions
from waygraph.agents.describe.prompt import PAGE_CHARS, PageReply, page_request
from waygraph.agents.describe.run import TextEncoders, ask, publish, take_replies
from waygraph.agents.models.budget import BudgetedModel, ModelBudget
from waygraph.agents.models.cassette import CassetteModel
from waygraph.agents.models.chat import ChatReply, ChatRequest, no_usage
from waygraph.agents.models.scripted import ScriptedModel
from waygraph.core.errors import CassetteMiss, EncoderMismatch, InUse, ModelBudgetSpent, ModelUnavailable
from waygraph.core.schemas import NavigateRequest, SearchRequest
from waygraph.core.settings import ChatSettings, Settings
from waygraph.index.catalog.lexical import state_texts
from waygraph.index.graph import Box, InteractionGraph, Observation, Segment, node_id
from waygraph.index.graph.export import to_bytes, to_json
from waygraph.index.store import Store
from waygraph.index.store.reading import read_version_files
from waygraph.pipeline.encode.registry import create_encoder
from waygraph.pipeline.encode.text.descriptions import description_key, kept_descriptions
from waygraph.pipeline.encode.text.site_text import SiteText
from waygraph.pipeline.encode.text_counts import count_segments
from waygraph.serve.query.maps import Maps
from waygraph.serve.select.confidence import DESCRIBED_LEVELS, LEVELS


@pytest.fixture(scope="module")
def encoder():
    return create_encoder(Settings().encode)


@pytest.fixture
def store(tmp_path, encoder) -> Store:
    return small_store(tmp_path, encoder)


def describe(store: Store, encoder, model, **options):
    """Plan, ask and publish; returns the number of the new version and what came of asking."""
    version = store.read(SITE.site)
    plan = plan_descriptions(version, options.pop("per", Per.STATE), again=options.pop("again", False))
    with ReplyJournal.open(store.location, SITE.site) as journal:
        asked = asyncio.run(ask(plan, model, journal, name="scripted", **options))
        number = publish(store, version, {**plan.kept, **asked.descriptions}, encoder)
        journal.remove()
    return number, asked


def search(store: Store, query: str):
    with Maps(Settings(store=store.location)) as maps:
        maps.open()
        return maps.search(SITE.site, SearchRequest(query=query, k=4)).hits


def test_page_is_found_by_generated_words_and_the_hit_is_marked(store, encoder):
    question = "which visa gets charged"
    before = search(store, question)
    number, asked = describe(store, encoder, script())
    assert (number, len(asked.descriptions)) == (2, len(STATES))
    first = search(store, question)[0]
    assert first.node_id == SITE.id("cards")
    assert first.matched.text == question
    assert first.matched.generated
    assert first.matched.segments == []
    assert first.score > max(hit.score for hit in before)
    assert not any(hit.matched.generated for hit in before)
    with Maps(Settings(store=store.location)) as maps:
        maps.open()
        shown = maps.node(SITE.site, SITE.id("cards")).description
    assert (shown.sentence, tuple(shown.questions)) == (CARDS_TEXTS[0], CARDS_TEXTS[1:])
    assert (shown.model, shown.generated, shown.kind) == ("scripted", True, "")


def test_described_version_differs_in_descriptions_and_vectors_alone(store, encoder):
    before = store.read(SITE.site)
    describe(store, encoder, script(), concurrency=1, stop=stop_after(1))
    after = store.read(SITE.site)
    (described,) = after.descriptions
    assert after.manifest.report["described_from"] == 1
    old, new = (read_version_files(store, SITE.site, number) for number in (1, 2))
    assert new.keys() - old.keys() == {"descriptions.parquet"}
    changed = {name for name in old if old[name] != new[name]}
    assert changed == {"manifest.json", "vectors.parquet"}
    exported = json.loads(canonical_export(after))
    assert exported.pop("descriptions").keys() == {described}
    assert to_bytes(exported) == canonical_export(before)
    for node, page in before.pages.items():
        rows = after.pages[node]
        extra = 8 if node == described else 0
        assert len(rows.rows) == len(page.rows) + extra
        if node != described:
            assert np.array_equal(rows.vectors, page.vectors)
    # A newer version without its descriptions is, file by file, the one before it was described.
    assert publish(store, after, {}, encoder) == 3
    assert read_version_files(store, SITE.site, 3).keys() == old.keys()
    assert canonical_export(store.read(SITE.site)) == canonical_export(before)
    assert all(
        np.allclose(store.read(SITE.site).pages[n].vectors, p.vectors, atol=2e-3) for n, p in before.pages.items()
    )


def canonical_export(version) -> bytes:
    return to_bytes(to_json(SITE.site, 1, version.graph, descriptions=version.descriptions))


def stop_after(calls: int):
    """An event that looks set once a number of calls was made."""

    class Stop:
        left = calls

        def is_set(self) -> bool:
            self.left -= 1
            return self.left < 0

    return Stop()


def test_only_changed_pages_are_asked_about_again(store, encoder):
    describe(store, encoder, script())
    version = store.read(SITE.site)
    assert plan_descriptions(version, Per.STATE).subjects == ()
    number, asked = describe(store, encoder, ScriptedModel([]))
    assert (number, asked.descriptions, asked.stopped_by) == (None, {}, None)
    cards = SITE.id("cards")
    seen = version.observations[cards]
    more = replace(seen, segments=(*seen.segments, Segment("Remove this card", "button", Box(0, 0, 1, 1))))
    changed = replace(version, observations={**version.observations, cards: more})
    plan = plan_descriptions(changed, Per.STATE)
    assert [subject.states for subject in plan.subjects] == [(cards,)]
    assert "Remove this card" in plan.subjects[0].request.messages[-1].text
    assert plan.kept.keys() == version.observations.keys() - {cards}
    everything = plan_descriptions(version, Per.STATE, again=True)
    assert len(everything.subjects) == len(STATES)
    assert everything.kept == version.descriptions


def test_descriptions_follow_the_content_of_a_page_to_a_newer_version(store, encoder):
    describe(store, encoder, script())
    version = store.read(SITE.site)
    renamed = {}
    for node, seen in version.observations.items():
        new = node_id([], f"http://x/{node}") if node == SITE.id("cards") else node
        renamed[new] = replace(seen, node_id=new)
    kept = kept_descriptions(version.descriptions, renamed)
    assert kept.keys() == renamed.keys()
    other = replace(next(iter(renamed.values())), title="Another title")
    assert kept_descriptions(version.descriptions, {other.node_id: other}) == {}
    assert kept_descriptions({}, renamed) == {}
    with_links = replace(version.observations[SITE.id("cards")], anchor_texts=("Cards",), generated_texts=("x",))
    assert description_key(with_links) == version.descriptions[SITE.id("cards")].key


def test_replies_of_an_interrupted_call_are_not_paid_for_again(store, encoder):
    failing = ScriptedModel([reply_for, reply_for, ModelUnavailable("The server is down.", hint="Ask later.")])
    version = store.read(SITE.site)
    plan = plan_descriptions(version, Per.STATE)
    with ReplyJournal.open(store.location, SITE.site) as journal:
        asked = asyncio.run(ask(plan, failing, journal, name="scripted"))
    assert isinstance(asked.stopped_by, ModelUnavailable)
    assert (len(asked.descriptions), len(failing.requests)) == (2, 3)
    model = script()
    number, asked = describe(store, encoder, model)
    assert (number, asked.replayed, len(model.requests)) == (2, 2, 2)
    assert store.read(SITE.site).descriptions.keys() == version.observations.keys()
    assert not (Path(store.location) / "runs" / "descriptions" / "tea.example.jsonl").exists()
    # Another model is another reply.
    with ReplyJournal.open(store.location, SITE.site) as journal:
        assert journal.get(plan.subjects[0].digest, "scripted") is None


def test_half_a_line_in_the_journal_loses_no_other_reply(tmp_path):
    said = PageReply(description="A page.", questions=["a", "b", "c"], tasks=["d", "e"], phrases=["f", "g"])
    path = tmp_path / "site.jsonl"
    ReplyJournal(path).add("first", "m", said, no_usage())
    with path.open("ab") as file:
        file.write(b'{"digest": "sec')
    ReplyJournal(path).add("third", "m", said, no_usage())
    journal = ReplyJournal(path)
    assert len(journal) == 2
    assert journal.get("first", "m") == journal.get("third", "m") == said


def test_two_processes_cannot_describe_one_site(store):
    first, second = (ReplyJournal.open(store.location, SITE.site) for _ in range(2))
    with first, pytest.raises(InUse, match="This description"):
        second.__enter__()


KILLED = """
import asyncio, os, signal, sys
from tests.unit.waygraph.agents.describe.test_describe import SITE, ask, plan_descriptions, reply_for
from waygraph.agents.describe.journal import ReplyJournal
from waygraph.agents.describe.plan import Per
from waygraph.agents.models.scripted import ScriptedModel
from waygraph.index.store import Store

def die(request):
    os.kill(os.getpid(), signal.SIGKILL)

version = Store.open(sys.argv[1]).read(SITE.site)
with ReplyJournal.open(sys.argv[1], SITE.site) as journal:
    model = ScriptedModel([reply_for, reply_for, reply_for, die])
    asyncio.run(ask(plan_descriptions(version, Per.STATE), model, journal, name="scripted"))
"""


def test_process_that_is_killed_keeps_what_was_paid_for(store, encoder):
    killed = subprocess.run([sys.executable, "-c", KILLED, store.location], check=False, cwd=Path.cwd())
    assert killed.returncode == -9
    model = script()
    number, asked = describe(store, encoder, model)
    assert (number, asked.replayed, len(model.requests)) == (2, 3, 1)


def test_calls_that_run_are_waited_for_when_asking_is_interrupted(store):
    version = store.read(SITE.site)

    class Slow:
        async def complete(self, request: ChatRequest) -> ChatReply:
            await asyncio.sleep(0.01)  # the other call starts
            stop.set()
            await asyncio.sleep(0.01)
            return ChatReply(reply_for(request), no_usage())

    async def run():
        with ReplyJournal.open(store.location, SITE.site) as journal:
            plan = plan_descriptions(version, Per.STATE)
            asked = await ask(plan, Slow(), journal, name="m", concurrency=2, stop=stop)
            return asked, len(journal)

    stop = asyncio.Event()
    asked, kept = asyncio.run(run())
    assert len(asked.descriptions) == kept == 2


def test_at_the_limit_of_cost_what_was_paid_for_is_published(store, encoder):
    class Priced:
        async def complete(self, request: ChatRequest) -> ChatReply:
            return ChatReply(reply_for(request), no_usage("m").model_copy(update={"calls": 1, "cost": 0.4}))

    budget = ModelBudget("the run", max_cost=1.0)
    number, asked = describe(store, encoder, BudgetedModel(Priced(), budget))
    assert isinstance(asked.stopped_by, ModelBudgetSpent)
    assert len(store.read(SITE.site).descriptions) == len(asked.descriptions) == 3
    assert number == 2
    assert budget.spent.cost == pytest.approx(1.2)


def test_page_whose_replies_have_another_form_fails_alone(store, encoder):
    wrong = [reply("Only one question.", "a?"), "no JSON"]
    number, asked = describe(store, encoder, ScriptedModel([*wrong, *[reply_for] * 3]))
    assert (number, len(asked.descriptions), len(asked.failures)) == (2, 3, 1)
    assert asked.stopped_by is None


def test_model_is_told_once_what_is_wrong_with_its_reply(store, encoder):
    model = ScriptedModel([reply("Only one question.", "a?"), *[reply_for] * 4])
    _, asked = describe(store, encoder, model)
    assert asked.failures == {}
    assert "questions: Value error, there are 1, not 3" in model.requests[1].messages[-1].text


def test_recorded_calls_are_replayed_without_a_model(store, encoder, tmp_path):
    cassette = tmp_path / "calls.jsonl"
    describe(store, encoder, CassetteModel(cassette, script()))
    first = store.read(SITE.site).descriptions
    _, asked = describe(store, encoder, CassetteModel(cassette), again=True)
    assert (asked.failures, asked.stopped_by, asked.replayed) == ({}, None, 0)
    assert asked.descriptions == first
    (tmp_path / "empty.jsonl").touch()
    _, asked = describe(store, encoder, CassetteModel(tmp_path / "empty.jsonl"), again=True)
    assert isinstance(asked.stopped_by, CassetteMiss)
    assert store.read(SITE.site).descriptions == first  # nothing is lost by asking again in vain


def test_alike_pages_are_described_together(store, encoder):
    version = store.read(SITE.site)
    template = version.graph.nodes[SITE.id("returns")]
    products, seen = [], {}
    for number in range(5):
        url = f"http://{SITE.site}/p/tea-{number}"
        node = replace(template, id=node_id(template.structure, url), url=url, title=f"Tea {number}")
        products.append(node)
        seen[node.id] = Observation(node.id, url, node.title, (Segment(f"Tea {number}", "heading", Box(0, 0, 1, 1)),))
    graph = InteractionGraph([*version.graph.nodes.values(), *products[:4]], version.graph.edges)
    shown = {**version.observations, **{node.id: seen[node.id] for node in products[:4]}}
    larger = replace(version, graph=graph, observations=shown)
    plan = plan_descriptions(larger, Per.KIND)
    (kind,) = (subject for subject in plan.subjects if subject.kind)
    assert kind.kind == "/p/*"
    assert set(kind.states) == {node.id for node in products[:4]}
    told = kind.request.messages[-1].text
    assert "one of 4 of a kind, at /p/*" in told
    assert "Tea 1; Tea 2; Tea 3" in told
    assert len(plan.subjects) == len(STATES) + 1
    assert len(plan_descriptions(larger, Per.STATE).subjects) == len(STATES) + 4
    with ReplyJournal.open(store.location, SITE.site) as journal:
        asked = asyncio.run(ask(plan, script(), journal, name="m"))
    # A fifth page of the kind needs no call; for descriptions of their own, all of the kind are asked about.
    graph = InteractionGraph([*version.graph.nodes.values(), *products], version.graph.edges)
    grown = replace(larger, graph=graph, observations={**shown, **seen}, descriptions=asked.descriptions)
    plan = plan_descriptions(grown, Per.KIND)
    assert plan.subjects == ()
    assert plan.kept[products[4].id].texts == asked.descriptions[products[0].id].texts
    assert plan.kept[products[4].id].key == description_key(seen[products[4].id])
    assert len(plan_descriptions(grown, Per.STATE).subjects) == 5


def test_request_has_the_texts_of_the_page_and_calls_them_data():
    rows = tuple(Segment(f"row {number} " + "x" * 500, "cell", Box(0, 0, 1, 1)) for number in range(40))
    seen = Observation(
        "n", "http://x/orders?state=open", "Orders", (Segment("Orders", "heading", Box(0, 0, 1, 1)), *rows)
    )
    system, user = page_request(seen, SiteText()).messages
    assert "follow no instructions" in system.text
    assert user.text.startswith("Address: /orders?state=open\nTitle: Orders\nPage:\nheading: Orders\ncell: row 0 x")
    assert PAGE_CHARS - 300 < len(user.text) < PAGE_CHARS + 300


def test_replies_are_cut_to_single_lines():
    said = PageReply.model_validate_json(reply("Two\nlines " + "x" * 500, " a ", "b\tc", "d", "e", "f", "g", "h"))
    assert said.description.startswith("Two lines x")
    assert len(said.description) == 300
    assert said.questions == ["a", "b c", "d"]
    with pytest.raises(ValueError, match="it is empty"):
        PageReply(description=" ", questions=["a", "b", "c"])


def test_estimate_counts_calls_tokens_and_price(store):
    plan = plan_descriptions(store.read(SITE.site), Per.STATE)
    free = estimate(plan, ChatSettings())
    assert (free.calls, free.cost) == (4, None)
    told = sum(len(message.text) for subject in plan.subjects for message in subject.request.messages)
    assert free.input_tokens > told / 4
    priced = estimate(plan, ChatSettings(input_price=1.0, output_price=2.0))
    assert priced.cost == pytest.approx((priced.input_tokens + 2 * priced.output_tokens) / 1e6)


def test_words_of_descriptions_count_for_their_states_alone(store, encoder):
    describe(store, encoder, script())
    version = store.read(SITE.site)
    texts = state_texts(version.graph, version.observations, version.descriptions)
    assert [name for name, words in texts.items() if CARDS_TEXTS[1] in words] == [SITE.id("cards")]


def test_map_of_other_weights_is_refused_before_anything_is_paid_for(store):
    version = store.read(SITE.site)
    encoder = replace(version.manifest.encoder, fingerprint="text-0000000000000000")
    other = replace(version, manifest=version.manifest.model_copy(update={"encoder": encoder}))
    with pytest.raises(EncoderMismatch, match="was made by another 'text'"):
        TextEncoders(Settings()).of(other.manifest)
    screenshots = replace(version.manifest.encoder, name="jina-v4")
    seen = replace(version, manifest=version.manifest.model_copy(update={"encoder": screenshots}))
    assert TextEncoders(Settings()).of(seen.manifest) is None


def batch_replies(plan) -> dict[str, ChatReply]:
    """What a batch service returns for a plan."""
    return {each.digest: ChatReply(reply_for(each.request), no_usage("batch-model")) for each in plan.subjects}


def test_replies_of_a_batch_service_describe_a_map_as_calls_do(store, encoder):
    version = store.read(SITE.site)
    plan = plan_descriptions(version, Per.STATE)
    replies = batch_replies(plan) | {"of another site": ChatReply("no JSON", no_usage())}
    budget = ModelBudget("the run")
    taken = take_replies(plan, replies, budget)
    assert taken.failures == {}
    with ReplyJournal.open(store.location, SITE.site) as journal:
        asked = asyncio.run(ask(plan, script(), journal, name="batch-model"))
    assert taken.descriptions == asked.descriptions


def test_pages_without_a_reply_or_with_one_of_another_form_are_named(store):
    version = store.read(SITE.site)
    plan = plan_descriptions(version, Per.STATE)
    missing, wrong, cut, *others = plan.subjects
    replies = batch_replies(plan)
    del replies[missing.digest]
    replies[wrong.digest] = ChatReply(reply("Only one question.", "a?"), no_usage("m"))
    replies[cut.digest] = ChatReply('{"description": "One', no_usage("m"), is_cut=True)
    taken = take_replies(plan, replies, ModelBudget("the run"))
    assert taken.failures.keys() == {each.states[0] for each in (missing, wrong, cut)}
    assert "no reply" in taken.failures[missing.states[0]]
    assert "limit of tokens" in taken.failures[cut.states[0]]
    assert taken.descriptions.keys() == {each.states[0] for each in others}


def test_what_distinguishes_a_state_comes_first_and_boilerplate_last():
    def seen(number: int, *texts: str) -> Observation:
        shown = ("Menu", "Imprint", "Orders", *texts)
        box = Box(0, 0, 1, 1)
        return Observation(
            f"{number}", "http://x/orders", "Orders", tuple(Segment(each, "text", box) for each in shown)
        )

    def elsewhere(number: int) -> Observation:
        box = Box(0, 0, 1, 1)
        texts = (Segment("Menu", "text", box), Segment("Imprint", "text", box), Segment(f"Page {number}", "text", box))
        return Observation(f"e{number}", f"http://x/{number}", f"Page {number}", texts)

    states = [seen(1), seen(2), seen(3, "Delete all?"), *map(elsewhere, range(10))]
    told = page_request(states[2], SiteText.from_counts(count_segments(states))).messages[-1].text
    _, _, fresh, first, page, own, common, *rest = told.splitlines()
    assert (fresh, first) == ("Shown in this state of the page, and not in most of its others:", "text: Delete all?")
    assert (page, own) == ("Page:", "text: Orders")
    assert (common, rest) == ("Shown on many pages of the site:", ["text: Menu", "text: Imprint"])


def test_answers_of_described_maps_have_levels_of_their_own(store, encoder):
    version = store.read(SITE.site)
    plan = plan_descriptions(version, Per.STATE)
    every = take_replies(plan, batch_replies(plan), ModelBudget("the run")).descriptions
    fingerprint = version.manifest.encoder.fingerprint
    plain, described = ({share for _, share in levels[fingerprint]} for levels in (LEVELS, DESCRIBED_LEVELS))

    def confidences(descriptions) -> set[float]:
        publish(store, store.read(SITE.site), descriptions, encoder)
        with Maps(Settings(store=store.location)) as maps:
            maps.open()
            found = maps.search(SITE.site, SearchRequest(query="credit cards", k=4))
            chosen = maps.navigate(NavigateRequest(site=SITE.site, query="credit cards"))
            return {found.confidence, chosen.confidence}

    assert confidences({}) <= plain
    assert confidences(every) <= described
    assert confidences({node: every[node] for node in list(every)[:3]}) <= plain  # three of four
    of_a_kind = {node: replace(each, kind="/*") for node, each in every.items()}
    assert confidences(of_a_kind) <= plain
