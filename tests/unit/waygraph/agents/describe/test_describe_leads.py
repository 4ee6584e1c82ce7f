"""Descriptions of pages that were not visited, by a scripted model."""

import asyncio
from dataclasses import replace

import pytest

from tests.described_map import SITE, reply, small_store
from waygraph.agents.describe.journal import ReplyJournal
from waygraph.agents.describe.plan import Per, plan_descriptions
from waygraph.agents.describe.run import ask, publish
from waygraph.agents.models.scripted import ScriptedModel
from waygraph.core.schemas import SearchRequest
from waygraph.core.settings import Settings
from waygraph.index.graph import Action, Lead, lead_id
from waygraph.pipeline.encode.registry import create_encoder
from waygraph.pipeline.encode.text.descriptions import kept_descriptions
from waygraph.pipeline.encode.text.lead_text import lead_observations
from waygraph.pipeline.jobs.publishing.draft import draft_from_version, encode_map
from waygraph.serve.query.maps import Maps

GANTT = ("A plan of all work.", "timeline with bars for everything planned", *(f"ask {n}" for n in range(6)))


def lead(path: str, *names: str, heading: str = "", refusal: str = "") -> Lead:
    url = f"https://{SITE.site}{path}"
    state = SITE.id("home")
    return Lead(lead_id(url), url, names, heading, "", state, Action("click", target=url), 1, refusal)


LEAD = lead("/issues/gantt", "Gantt", heading="Planning")


@pytest.fixture(scope="module")
def encoder():
    return create_encoder(Settings().encode)


@pytest.fixture
def store(tmp_path, encoder):
    store = small_store(tmp_path, encoder)
    version = store.read(SITE.site)
    leads = {each.id: each for each in (LEAD, lead("/logout", "Log out", refusal="hazard"))}
    found = encode_map(version.graph, version.observations.values(), leads.values(), (), encoder)
    draft = draft_from_version(version, Settings(), found)
    store.publish(replace(draft, leads=leads))
    return store


def describe(store, encoder, **options):
    version = store.read(SITE.site)
    plan = plan_descriptions(version, Per.STATE, **options)
    model = ScriptedModel([reply(*GANTT)] * len(plan.subjects))
    with ReplyJournal.open(store.location, SITE.site) as journal:
        asked = asyncio.run(ask(plan, model, journal, name="scripted"))
        publish(store, version, {**plan.kept, **asked.descriptions}, encoder)
    return plan, asked


def test_a_lead_is_found_by_what_a_model_says_of_its_link(store, encoder):
    plan = plan_descriptions(store.read(SITE.site), Per.STATE)
    (subject,) = [each for each in plan.subjects if each.states == (LEAD.id,)]
    told = subject.request.messages[-1].text
    assert "Address: /issues/gantt\nNames of links to it: Gantt\nAbout it: Planning" in told
    assert all("Gantt" not in message.text for message in subject.request.messages[:-1])
    model = ScriptedModel([reply(*GANTT)])
    with ReplyJournal.open(store.location, SITE.site) as journal:
        asked = asyncio.run(ask(replace(plan, subjects=(subject,)), model, journal, name="scripted"))
    publish(store, store.read(SITE.site), asked.descriptions, encoder)
    with Maps(Settings(store=store.location)) as maps:
        maps.open()
        hit = maps.search(SITE.site, SearchRequest(query="bars of a timeline for what is planned", k=1)).hits[0]
        answer = maps.node(SITE.site, LEAD.id)
    assert (hit.node_id, hit.matched.generated) == (LEAD.id, True)
    assert answer.description.sentence == GANTT[0]


def test_leads_are_asked_about_after_states_and_refused_ones_are_not(store):
    version = store.read(SITE.site)
    asked = [state for each in plan_descriptions(version, Per.STATE).subjects for state in each.states]
    assert asked == [*version.observations, LEAD.id]
    assert plan_descriptions(version, Per.STATE, leads=0).states == len(version.observations)


def test_a_description_of_a_lead_holds_while_its_link_says_the_same(store, encoder):
    describe(store, encoder)
    version = store.read(SITE.site)
    assert plan_descriptions(version, Per.STATE).subjects == ()
    seen = list(version.observations.values())
    for known, holds in ((LEAD, True), (replace(LEAD, heading="Reports"), False)):
        (observation,) = lead_observations([known], seen)
        assert (LEAD.id in kept_descriptions(version.descriptions, {LEAD.id: observation})) is holds


def test_descriptions_of_leads_do_not_make_a_map_described(store, encoder):
    version = store.read(SITE.site)
    plan = plan_descriptions(version, Per.STATE)
    only = replace(plan, subjects=tuple(each for each in plan.subjects if each.states == (LEAD.id,)))
    model = ScriptedModel([reply(*GANTT)])
    with ReplyJournal.open(store.location, SITE.site) as journal:
        publish(store, version, asyncio.run(ask(only, model, journal, name="m")).descriptions, encoder)
    with Maps(Settings(store=store.location)) as maps:
        maps.open()
        with maps.map_of(SITE.site) as opened:
            assert opened.descriptions.keys() == {LEAD.id}
            assert not opened.is_described
