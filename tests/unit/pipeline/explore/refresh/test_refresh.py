"""The pure parts of a refresh: the sample, noise, verdicts, and the succession of states between versions."""

import asyncio
from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from waygraph.core.urls import UrlPolicy
from waygraph.index.graph import Action, Box, Edge, InteractionGraph, Merge, Node, Observation, Recognition, Segment
from waygraph.index.graph.diff import ComparedMap, diff_maps
from waygraph.index.graph.state_matching import compose_lineage, match_states
from waygraph.index.store.draft import blobs_of_report
from waygraph.index.store.lineage import lineage_table, read_lineage
from waygraph.pipeline.browser.page.features import text_feature, text_features
from waygraph.pipeline.browser.page.snapshot import Candidate, Snapshot
from waygraph.pipeline.encode.text.boilerplate_reuse import has_same_vectors, reuse_boilerplate
from waygraph.pipeline.explore.checkpoint.journal_codec import Unreadable
from waygraph.pipeline.explore.checkpoint.snapshot_store import snapshot_key
from waygraph.pipeline.explore.engine.outages import is_outage
from waygraph.pipeline.explore.records.listing import ListedPage, SiteListing
from waygraph.pipeline.explore.records.outcome import ActionOutcome
from waygraph.pipeline.explore.records.state import Load
from waygraph.pipeline.explore.refresh.exploration_record import (
    AnswerHistory,
    ExplorationRecord,
    RecordContents,
    RecordedLoad,
    RecordedOutcome,
    write_record,
)
from waygraph.pipeline.explore.refresh.noise import UnstableRegions, changed_features
from waygraph.pipeline.explore.refresh.prior_exploration import PriorExploration
from waygraph.pipeline.explore.refresh.refresh import estimate_share
from waygraph.pipeline.explore.refresh.sample import RefreshPlan, plan_refresh
from waygraph.pipeline.explore.session.secrets import Redactor
from waygraph.pipeline.jobs.publishing.changes import refresh_summary
from waygraph.pipeline.jobs.report.outcomes import Publication

BOX = Box(0, 0, 10, 10)


def snapshot(url="http://a.test/", texts=(), links=()):
    candidates = tuple(
        Candidate(Action("click", role="link", name=f"to {t}", xpath=f"/a[{i}]", target=t), "a", False, "", False, BOX)
        for i, t in enumerate(links)
    )
    segments = tuple(Segment(text, "text", BOX) for text in texts)
    return Snapshot(url.ljust(32, "0"), url, url, "", "text/html", 200, (), candidates, segments, False, 0)


def record(loads=(), outcomes=(), looks=(), *, noise=None, is_public=lambda _: True, about=None):
    by_key = {snapshot_key(each): each for each in looks}
    contents = RecordContents(
        about=about or {},
        states={each.id: key for key, each in by_key.items()},
        loads=dict(loads),
        outcomes=outcomes,
        snapshot=by_key.__getitem__,
        blobs=lambda key: ("1", "2", "3") if key in by_key else None,
        noise=noise or {"http://a.test/": ("x",)},
    )
    return ExplorationRecord.parse(write_record(contents, is_public))


def link(target, source, shown):
    action = source.candidates[0].action
    outcome = ActionOutcome(shown.id, loaded=True, snapshot_key=snapshot_key(shown), ms=10)
    return RecordedOutcome(
        snapshot_key(source), source.id, structs.replace(action, target=target), "", outcome, AnswerHistory()
    )


HOME = snapshot(texts=("Home",), links=("http://a.test/x",))
PAGE = snapshot("http://a.test/x", texts=("A page",))
LOADS = {
    seen.url: RecordedLoad(Load(seen.id, 5, snapshot_key=snapshot_key(seen)), AnswerHistory()) for seen in (HOME, PAGE)
}


def kept(**more):
    return record(LOADS, [link("http://a.test/x", HOME, PAGE)], [HOME, PAGE], **more)


def prior_exploration(plan, **more):
    return PriorExploration(kept(), plan, url_policy=UrlPolicy(), **more)


def test_a_record_is_read_back_as_it_was_written():
    read = kept()
    assert dict(read.loads) == LOADS
    assert read.outcomes == (link("http://a.test/x", HOME, PAGE),)
    assert read.snapshot(snapshot_key(PAGE)) == PAGE
    assert read.blobs(snapshot_key(PAGE)) == ("1", "2", "3")
    assert read.noise("http://a.test/") == {"x"}
    assert read.snapshot("another") is None


def test_entries_with_a_secret_are_not_recorded():
    read = kept(is_public=Redactor(("A page",)).is_public)
    assert read.snapshot(snapshot_key(PAGE)) is None
    assert read.snapshot(snapshot_key(HOME)) == HOME


@pytest.mark.parametrize("content", [b"", b"PAR1 no record"])
def test_other_files_are_unreadable(content):
    with pytest.raises(Unreadable):
        ExplorationRecord.parse(content)


def test_a_plain_link_is_reused_wherever_on_the_page_it_is():
    prior = prior_exploration(RefreshPlan(frozenset(), frozenset()))
    moved = structs.replace(HOME.candidates[0], action=structs.replace(HOME.candidates[0].action, xpath="/nav/a[7]"))
    known = prior.reused_outcome("a look that nobody had", moved)
    assert known is not None
    assert known.url == "http://a.test/x"
    handled = structs.replace(moved, handler="open(this)")
    assert prior.reused_outcome("a look that nobody had", handled) is None


def cards(*texts):
    """Return a page of texts with a button "Details" each, and one button with a unique name."""
    names = [*["Details"] * len(texts), "Menu"]
    buttons = (Action("click", role="button", name=name, xpath=f"/b[{i}]") for i, name in enumerate(names))
    page = snapshot(texts=texts)
    return replace(page, candidates=tuple(Candidate(each, "button", False, "", False, BOX) for each in buttons))


@pytest.mark.parametrize(
    ("old", "new", "recalled"),
    [
        (["Oak", "Elm"], ["Oak", "Elm"], {"Details", "Menu"}),
        (["Oak", "Elm"], ["Elm", "Oak"], {"Menu"}),
        (["Order 18", "Order 17"], ["Order 19", "Order 18"], {"Menu"}),
        (["18", "17"], ["19", "18"], {"Menu"}),
        (["It is 12:04", "Elm", "7 visitors"], ["It is 12:05", "Elm", "8 visitors"], {"Details", "Menu"}),
        (["advert", "Oak", "Elm"], ["Oak", "Elm", "advert"], {"Details", "Menu"}),
        (["Oak", "Elm"], ["Oak", "Ash"], set()),
    ],
)
def test_one_of_several_equal_elements_is_reused_if_its_position_did_not_change(old, new, recalled):
    noise = [text_feature("text", "advert")]
    old, new = cards(*old), cards(*new)
    outcomes = [
        RecordedOutcome(snapshot_key(old), old.id, c.action, "", ActionOutcome(), AnswerHistory())
        for c in old.candidates
    ]
    prior = PriorExploration(
        record({}, outcomes, [old], noise={"http://a.test/": noise}),
        RefreshPlan(frozenset(), frozenset()),
        url_policy=UrlPolicy(),
    )
    looks = {c.action.name: prior.recorded_key(new, snapshot_key(new), c) for c in new.candidates}
    known = {c.action.name for c in new.candidates if prior.reused_outcome(looks[c.action.name], c) is not None}
    assert known == recalled


def test_loads_and_outcomes_in_the_sample_are_not_reused():
    asked = prior_exploration(RefreshPlan(frozenset({"http://a.test/x"}), frozenset({0})))
    assert asked.reused_load("http://a.test/x") is None
    assert asked.reused_load("http://a.test/").source == "recalled"
    assert asked.reused_outcome(snapshot_key(HOME), HOME.candidates[0]) is None
    assert prior_exploration(RefreshPlan()).reused_load("http://a.test/") is None


@pytest.mark.parametrize(
    ("load", "status", "is_kept"),
    [
        (Load(problem="Page.goto: Timeout 20000ms exceeded"), 0, True),
        (Load(problem="http://a.test/x shows a block page (Cloudflare)."), 0, True),
        (Load("id", snapshot_key="l"), 502, True),
        (Load("id", snapshot_key="l"), 404, False),
        (Load(problem="net::ERR_NAME_NOT_RESOLVED"), 0, False),
        (Load(problem="net::ERR_CONNECTION_RESET"), 0, True),
        # Behind the egress proxy, which reports the reason.
        (Load(problem="net::ERR_TUNNEL_CONNECTION_FAILED (it does not answer)"), 0, True),
        (Load(problem="net::ERR_EMPTY_RESPONSE (its name cannot be resolved (DNS))"), 0, False),
    ],
)
def test_only_outages_keep_the_earlier_outcome(load, status, is_kept):
    seen = replace(PAGE, status=status) if status else None
    assert (prior_exploration(RefreshPlan(), grace=1).kept_load("http://a.test/x", load, seen) is not None) == is_kept
    assert prior_exploration(RefreshPlan(), grace=0).kept_load("http://a.test/x", load, seen) is None


@pytest.mark.parametrize(
    ("problem", "is_kept"),
    [("http://a.test/ could not be reached again: http://a.test/ answers 502.", True), ("no such element", False)],
)
def test_an_action_keeps_its_outcome_when_its_page_is_not_reachable(problem, is_kept):
    asked, link_to = prior_exploration(RefreshPlan(), grace=1), HOME.candidates[0]
    kept = asked.kept_outcome(HOME.id, link_to, ActionOutcome(problem=problem))
    assert (kept is not None) == is_kept
    assert prior_exploration(RefreshPlan()).kept_outcome(HOME.id, link_to, ActionOutcome(problem=problem)) is None
    assert asked.reused_outcome(snapshot_key(HOME), link_to) is None
    assert asked.reused_outcome(snapshot_key(HOME), link_to, is_reachable=False).url == PAGE.url


THIRD, FOURTH = (snapshot(f"http://a.test/{name}", texts=(name,)) for name in ("third", "fourth"))


@pytest.mark.parametrize(
    ("first", "from_anew", "verdict"),
    [
        (PAGE, [], "same"),
        (THIRD, [THIRD, THIRD], "differs"),
        (THIRD, [PAGE, PAGE], "session_dependent"),
        (THIRD, [FOURTH, FOURTH], "session_dependent"),
        (THIRD, [THIRD, PAGE], "non_deterministic"),
        (THIRD, [PAGE, FOURTH], "non_deterministic"),
    ],
    ids=lambda each: each if isinstance(each, str) else "",
)
def test_an_action_with_another_outcome_is_repeated_twice_in_fresh_sessions(first, from_anew, verdict):
    looks, left = {snapshot_key(each): each for each in (PAGE, THIRD, FOURTH)}, list(from_anew)

    def leads_to(page):
        return ActionOutcome(page.id, loaded=True, snapshot_key=snapshot_key(page), ms=10)

    async def again():
        return leads_to(left.pop(0))

    asked = prior_exploration(RefreshPlan())
    done = asked.with_verdict(HOME, HOME.candidates[0], leads_to(first), snapshot_of=looks.__getitem__, repeat=again)
    outcome = asyncio.run(done)
    assert (outcome.verdict, outcome.node_id, left) == (verdict, first.id, [])


@pytest.mark.parametrize(("mapped", "verdict"), [(2, "differs"), (1, "same")], ids=["commits", "sessions"])
def test_random_parts_of_urls_distinguish_pages_if_they_did_in_the_map(mapped, verdict):
    pages = [snapshot(f"http://a.test/c/{token}", texts=["A page"]) for token in ("0a1b2c3d", "4e5f6a7b", "8c9dae0f")]
    first, *_, last = pages
    known = [HOME, *pages[:mapped]]
    loads = {seen.url: RecordedLoad(Load(seen.id, snapshot_key=snapshot_key(seen)), AnswerHistory()) for seen in known}
    before = record(loads, [link("http://a.test/x", HOME, first)], known)
    looks = {snapshot_key(each): each for each in pages}

    async def again():
        return ActionOutcome(last.id, loaded=True, snapshot_key=snapshot_key(last))

    async def asked():
        prior = PriorExploration(before, RefreshPlan(), url_policy=UrlPolicy())
        clicked = HOME.candidates[0]
        return await prior.with_verdict(HOME, clicked, await again(), snapshot_of=looks.__getitem__, repeat=again)

    assert asyncio.run(asked()).verdict == verdict


def test_outages_are_counted_until_a_response_arrives():
    prior = prior_exploration(RefreshPlan(), grace=3)
    missed = prior.load_history("http://a.test/x", Load(source="kept"), changed=False)
    assert missed == AnswerHistory(age=1, misses=1)
    assert is_outage(ActionOutcome(problem="It took longer than 120 s."))
    assert prior.load_history("http://a.test/x", Load(), changed=True) == AnswerHistory(checks=1, changes=1)


@given(st.floats(0.01, 1), st.integers(0, 60), st.integers(0, 200_000))
def test_a_sample_stays_within_its_share_and_its_budget(share, pages, budget_ms):
    loads = {f"http://a.test/{i}": RecordedLoad(Load("n", 100), AnswerHistory(age=i % 5)) for i in range(pages)}
    outcomes = [link(f"http://a.test/{i}", HOME, PAGE) for i in range(2 * pages)]
    plan = plan_refresh(record(loads, outcomes, [PAGE]), share=share, budget_ms=budget_ms, seed="s")
    assert plan == plan_refresh(record(loads, outcomes, [PAGE]), share=share, budget_ms=budget_ms, seed="s")
    assert plan.uniform <= plan.outcomes
    assert len(plan.loads) + 2.5 * len(plan.outcomes) <= share * (3 * pages + 1.1 * 2 * pages) + 3
    assert 350 * len(plan.loads) + 260 * len(plan.outcomes) <= budget_ms


def test_doubtful_and_frequently_changed_loads_are_sampled_first():
    fresh, restless = AnswerHistory(checks=20), AnswerHistory(checks=20, changes=20, age=3)
    loads = {f"http://a.test/{i}": RecordedLoad(Load("n"), restless if i < 5 else fresh) for i in range(50)}
    outcomes = [link(f"http://a.test/{i}", HOME, PAGE) for i in range(50)]
    doubted = {"share": 0.1, "budget_ms": 1e9, "doubted": lambda each: each.action.target.endswith("/7")}
    plans = [plan_refresh(record(loads, outcomes, [PAGE]), seed=str(n), **doubted) for n in range(20)]
    asked = Counter(url for plan in plans for url in plan.loads)
    assert min(asked[f"http://a.test/{i}"] for i in range(5)) > max(asked[f"http://a.test/{i}"] for i in range(5, 50))
    assert all(7 in plan.outcomes for plan in plans)


def test_estimate_without_a_sample_spans_zero_to_one():
    assert estimate_share(0, 0) == (0.0, 1.0)
    assert estimate_share(0, 100)[1] < 0.05


TEXT = st.lists(st.sampled_from(["menu", "news", "footer", "help", "about", "team"]), unique=True, min_size=2)


@given(TEXT, st.data())
def test_changes_in_an_unstable_region_are_noise_and_changes_elsewhere_are_not(texts, data):
    place = data.draw(st.integers(0, len(texts)))
    looks = [snapshot(texts=[*texts[:place], f"advert {word}", *texts[place:]]) for word in ("tea", "salt", "rice")]
    old, *new = looks
    restless = UnstableRegions(new)
    assert changed_features(old, new[0])
    assert not changed_features(old, new[0], restless.noise_in(old) | restless.noise_in(new[0]))
    changed = snapshot(texts=["entirely other", *(s.text for s in old.segments)])
    drawn = restless.noise_in(changed) | restless.noise_in(new[0])
    assert bool(changed_features(changed, new[0], drawn)) == (place != 0)


# ---- which state is which ----------------------------------------------------------------------------------------


def graph(*pages):
    """Pages of a start page: (id, path, structure); each is linked from the start."""
    nodes = [Node(name, f"http://a.test/{path}", name, shape, int(bool(path)), True) for name, path, shape in pages]
    start = nodes[0].id
    edges = [
        Edge(start, node.id, Action("click", role="link", name=node.url, target=node.url, xpath=f"/{node.id}"))
        for node in nodes[1:]
    ]
    return InteractionGraph(nodes, edges)


def side(map_, texts, merges=()):
    seen = {
        name: Observation(name, node.url, "", tuple(Segment(t, "text", BOX) for t in texts.get(name, ())))
        for name, node in map_.nodes.items()
    }
    return ComparedMap(map_, seen, Recognition({m.merged: m for m in merges}), text_features)


def test_a_page_whose_elements_shifted_is_the_same_page_with_the_same_links():
    old = graph(("home", "", ("a",)), ("p1", "p", ("b", "c")), ("q1", "q", ("d",)))
    new = graph(("home2", "", ("z",)), ("p2", "p", ("y", "x")), ("q1", "q", ("d",)))
    texts = {"home": ["Home"], "home2": ["Home"], "p1": ["Page"], "p2": ["Page"], "q1": ["Quite"]}
    diff = diff_maps(side(old, texts), side(new, texts))
    assert diff.successors == {"home": "home2", "p1": "p2", "q1": "q1"}
    assert diff.counts() == {"states": {"match": 1, "moved": 2}, "edges": {"moved": 2}, "tools": {}}
    assert diff.broken == ()


def test_a_removed_page_breaks_the_edge_to_it():
    old = graph(("home", "", ("a",)), ("p", "p", ("b",)))
    new = graph(("home", "", ("a",)), ("r", "r", ("c",)))
    diff = diff_maps(side(old, {"p": ["Pretzels"]}), side(new, {"r": ["Radishes"]}))
    states = {"added": 1, "gone": 1, "match": 1}
    assert diff.counts() == {"states": states, "edges": {"added": 1, "gone": 1}, "tools": {}}
    assert [node_id for node_id, _ in diff.broken] == ["p"]


def test_a_page_with_another_url_is_matched_by_its_own_texts():
    shared = ["Menu", "Footer"]
    names = [(f"p{i}", f"p{i}", (f"s{i}",)) for i in range(5)]
    old = graph(("home", "", ("a",)), *names)
    new = graph(("home", "", ("a",)), ("m", "moved", ("z",)), *names[1:])
    texts = {f"p{i}": [*shared, f"word {'abcde'[i]}"] for i in range(5)} | {"m": [*shared, "word a"]}
    diff = diff_maps(side(old, texts), side(new, texts))
    assert diff.successors["p0"] == "m"
    assert {c.verdict for c in diff.states if c.before == "p0"} == {"moved"}


def test_numbers_and_noise_are_no_change_and_words_are():
    map_ = graph(("home", "", ("a",)))
    old, new = side(map_, {"home": ["3 visitors", "old words"]}), side(map_, {"home": ["4 visitors", "new words"]})
    (change,) = diff_maps(old, new).states
    assert (change.verdict, change.added, change.removed) == ("changed", ("new words",), ("old words",))
    known = frozenset(text_features(old.observations["home"]) | text_features(new.observations["home"]))
    assert diff_maps(old, replace(new, noise=lambda _: known)).states[0].verdict == "match"


def test_a_merged_snapshot_is_succeeded_by_the_state_it_was_merged_with():
    home = ("home", "", ("a",))
    old, new = graph(home, ("p1", "p?x=1", ("b",))), graph(home, ("p2", "p?x=2", ("b",)))
    merge = Merge("p2", "p1", "volatile_parameters", "http://a.test/p?x=1")
    assert diff_maps(side(old, {}), side(new, {}, [merge])).successors["p1"] == "p2"


def test_a_state_that_another_was_merged_with_keeps_its_id():
    home, page, other = ("home", "", ("a",)), ("p", "p", ("b",)), ("v", "p?v=1", ("b",))
    old, new = graph(home, other, page), graph(home, page)
    merge = Merge("p", "v", "volatile_parameters", "http://a.test/p?v=1")
    link = next(edge for edge in old.edges if edge.target == "v")
    new.add_edge(replace(link, target="p"))
    diff = diff_maps(side(old, {}), side(new, {}, [merge]))
    assert {c.before: c.verdict for c in diff.states} == {"home": "match", "p": "match", "v": "gone"}
    assert diff.successors == {"home": "home", "p": "p", "v": "p"}
    assert diff.counts()["edges"] == {"match": 2}
    assert diff.broken == ()


@st.composite
def maps(draw):
    count = draw(st.integers(1, 8))
    ids = draw(st.lists(st.sampled_from("abcdefghijkl"), min_size=count, max_size=count, unique=True))
    looks = draw(st.lists(st.integers(0, 1), min_size=count, max_size=count))
    return graph(*((f"{ids[i]}{looks[i]}", ids[i] * bool(i), (ids[i], str(i))) for i in range(count)))


@given(maps(), maps())
def test_every_state_and_edge_is_in_the_diff_once(old, new):
    diff = diff_maps(side(old, {}), side(new, {}))
    assert len(set(diff.successors.values())) == len(diff.successors)
    assert sorted(c.before for c in diff.states if c.before) == sorted(old.nodes)
    assert sorted(c.after for c in diff.states if c.after) == sorted(new.nodes)
    assert sum(c.before is not None for c in diff.edges) == len(list(old.edges))
    assert sum(c.after is not None for c in diff.edges) == len(list(new.edges))


@given(maps(), maps(), st.data())
def test_merges_take_no_successor_from_existing_states(old, new, data):
    names = st.sampled_from(sorted(old.nodes | new.nodes))
    pairs = data.draw(st.lists(st.tuples(names, names), max_size=5))
    merges = [Merge(kept, name, "volatile", "") for kept, name in pairs if kept != name]
    diff = diff_maps(side(old, {}), side(new, {}, merges))
    verdicts = {change.before: change for change in diff.states if change.before}
    assert all(verdicts[name].after == name for name in old.nodes if name in new.nodes)
    assert sorted(change.after for change in diff.states if change.after) == sorted(new.nodes)


@given(maps())
def test_a_map_is_its_own_successor(same):
    assert match_states(same, same, ({}, {})) == {node_id: node_id for node_id in same.nodes}
    assert set(diff_maps(side(same, {}), side(same, {})).counts()["states"]) == {"match"}


def test_ids_of_all_earlier_versions_lead_to_present_ids():
    first = compose_lineage({}, {"a": "b"}, live={"b", "d"}, gone={"c"})
    assert first == {"a": "b", "c": ""}
    second = compose_lineage(first, {"b": "e", "d": "d"}, live={"e", "d"}, gone=set())
    assert second == {"a": "e", "b": "e", "c": ""}
    assert compose_lineage(second, {"d": "d"}, live={"d", "a"}, gone={"e"}) == {"b": "", "c": "", "e": ""}
    assert read_lineage(lineage_table(second)) == second


def test_the_record_is_a_blob_of_its_version():
    assert blobs_of_report({"fates": "1", "record": "2", "seconds": 3}) == {"1", "2"}


# ---- what keeps its vectors ----------------------------------------------------------------------------------------

SITE = {"boilerplate": ["footer", "help", "menu"], "titles": ["Acme"], "shared": {"http://a.test/p": ["one", "two"]}}


def seen(url="http://a.test/p"):
    return Observation("n", url, "", ())


def test_boilerplate_is_reused_until_it_differs_too_much():
    now = {"boilerplate": ["help", "menu", "new", "footer"], "titles": ["Acme"], "shared": {"http://a.test/q": ["x"]}}
    kept_context = reuse_boilerplate(SITE, now)
    assert kept_context == {**SITE, "shared": {"http://a.test/q": ["x"]}}
    assert reuse_boilerplate(SITE, {**now, "boilerplate": ["other", "things"]})["boilerplate"] == ["other", "things"]
    assert reuse_boilerplate(SITE, SITE) == SITE
    assert reuse_boilerplate({}, now) == now


def test_states_that_differ_in_boilerplate_only_stay_distinguished():
    now = {**SITE, "boilerplate": ["footer", "help", "menu", "two"], "shared": {"http://a.test/p": ["one"]}}
    assert reuse_boilerplate(SITE, now) == SITE


def test_the_text_of_a_state_is_unchanged_if_its_page_and_the_site_are():
    other = {**SITE, "shared": {**SITE["shared"], "http://a.test/q": ["x"]}}
    assert has_same_vectors(SITE, other, seen())
    assert not has_same_vectors(SITE, other, seen("http://a.test/q"))
    assert not has_same_vectors(SITE, {**SITE, "titles": []}, seen())
    assert has_same_vectors({}, {}, seen())


def test_a_refresh_summary_is_read_from_other_versions_and_can_be_written():
    unstable = [("state", "click 'a lone \ud800'", "non_deterministic")] * 30
    account = refresh_summary({"refresh": {"of": 1, "unstable": unstable}})
    made = Publication(
        version=2, encoded=0, reused=1, encode_seconds=0, publish_seconds=0, states=1, refresh=account
    )  # fmt: skip
    assert len(Publication.model_validate_json(made.model_dump_json()).refresh["unstable"]) == 20
    assert refresh_summary({"seconds": 1}) == {}


def listing(**dates):
    """A listing of pages of the site by path, with dates; `_` is the start page."""
    return SiteListing(
        "2026-03-01T00:00:00Z",
        tuple(ListedPage(f"http://a.test/{path.strip('_')}", lastmod=date) for path, date in dates.items()),
    )


def heeding(asked="", at="2026-02-01T00:00:00Z", **more):
    """A prior exploration of the time `at`, which asked for the page x at another time."""
    x = replace(LOADS["http://a.test/x"], asked=asked)
    before = record(LOADS | {"http://a.test/x": x}, [], [HOME, PAGE], about={"at": at} if at else {})
    plans = []

    def replan(changed):
        plans.append(changed)
        return RefreshPlan(frozenset(changed), frozenset())

    return PriorExploration(
        before, RefreshPlan(frozenset(), frozenset()), url_policy=UrlPolicy(), replan=replan, **more
    )


def test_pages_that_the_site_says_have_changed_are_asked_for_and_visited_first():
    prior = heeding(wanted=["http://a.test/wanted"])
    changed = prior.heed_dates(listing(_="2026-01-31", x="2026-02-02", new="2026-02-03", old="2026-01-01", plain=""))
    assert changed == 2
    assert prior.plan.loads == {"http://a.test/x"}
    assert list(prior.wanted) == ["http://a.test/wanted", "http://a.test/new", "http://a.test/x"]


@pytest.mark.parametrize(
    ("asked", "at", "changed"),
    [
        ("2026-02-10T00:00:00Z", "2026-02-20T00:00:00Z", 1),  # a page that the last refresh reused
        ("2026-02-12T00:00:00Z", "2026-02-01T00:00:00Z", 0),
        ("", "", 0),  # a record without a time
    ],
)
def test_a_change_counts_since_the_page_was_last_asked_for(asked, at, changed):
    assert heeding(asked, at).heed_dates(listing(x="2026-02-11T00:00:00Z")) == changed


def test_changed_pages_come_first_in_the_sample_and_leave_room_for_others():
    loads = {f"http://a.test/{i}": RecordedLoad(Load("n"), AnswerHistory()) for i in range(100)}
    known, options = record(loads, [], [PAGE]), {"share": 0.05, "budget_ms": 1e9, "seed": "s"}
    drawn = plan_refresh(known, **options).loads
    changed = sorted(loads.keys() - drawn)
    plan = plan_refresh(known, changed, **options)
    assert len(plan.loads) == len(drawn) == 11
    assert set(changed[:9]) <= plan.loads
    assert len(plan.loads & drawn) == 2
    assert plan_refresh(known, changed[:1], **options).loads - drawn == {changed[0]}
