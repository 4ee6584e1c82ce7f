"""Refreshes of real sites: the map equals that of a fresh crawl, at less work, and the diff is correct."""

import json
import os
from collections import Counter
from dataclasses import dataclass, field

import pytest
from hypothesis import HealthCheck, Phase, example, given, settings
from hypothesis import strategies as st

from tests.blobs import MemoryBlobs
from tests.browsers import LOOPBACK_ONLY
from tests.exploring import explore_with
from tests.sites.mutable import KINDS, PATHS, MutableSite, Mutation
from tests.sites.noise import noise_pages
from tests.sites.server import FixtureServer, Page
from waygraph.core.settings import Settings
from waygraph.index.graph.diff import ComparedMap, diff_maps, element_location
from waygraph.index.graph.export import to_json
from waygraph.pipeline.browser.page.features import text_features
from waygraph.pipeline.explore.refresh.exploration_record import ExplorationRecord
from waygraph.pipeline.explore.refresh.prior_exploration import PriorExploration
from waygraph.pipeline.explore.refresh.sample import RefreshPlan, plan_refresh

SETTINGS = Settings(browser=LOOPBACK_ONLY, explore={"depth": 2, "workers": 2})
#: Random sets of mutations beside the one that is always tried; `make soak-refresh` tries 30.
SETS = int(os.environ.get("WAYGRAPH_MUTATIONS", "0"))


class Explorations:
    """Explorations of several sites, one after the other, and what they captured."""

    def __init__(self):
        self.blobs = MemoryBlobs()

    def __call__(self, site, prior=None):
        return explore_with(SETTINGS, site.url, blobs=self.blobs, prior=prior)

    def record(self, capture):
        return ExplorationRecord.parse(self.blobs[capture.report.record])

    def again(self, site, before, *, share=None, grace=0):
        """Refresh completely, or a share of the map."""
        record = self.record(before)
        plan = RefreshPlan() if share is None else plan_refresh(record, share=share, budget_ms=1e9, seed="1")
        return self(
            site, PriorExploration(record, plan, url_policy=SETTINGS.explore.url_policy, grace=grace, name=f"{share}")
        )

    def diff(self, before, after):
        sides = (
            ComparedMap(
                each.graph, each.observations, each.recognition, text_features, self.record(each).noise, each.tools
            )
            for each in (before, after)
        )
        unstable = {(state, action, place): verdict for state, action, verdict, place in after.refresh.unstable}
        return diff_maps(*sides, unstable)


@pytest.fixture(scope="module")
def explorations():
    return Explorations()


class Mapped(tuple):
    """A site and its capture. The `repr` is short: Hypothesis prints all arguments of a failure."""

    __slots__ = ()

    def __repr__(self):
        return "Mapped(...)"


@pytest.fixture(scope="module")
def mapped(explorations):
    """A site in its original form, and its capture."""
    with MutableSite() as site:
        yield Mapped((site, explorations(site)))


def export(capture):
    """Return everything that is canonical, as text."""
    return json.dumps(to_json(capture.site, 1, capture.graph, recognition=capture.recognition), sort_keys=True)


MUTATIONS = st.lists(
    st.builds(Mutation, st.sampled_from(KINDS), st.sampled_from(PATHS[1:])), min_size=1, max_size=5, unique=True
)


ALWAYS_TRIED = [
    Mutation("remove", "/news/today"),
    Mutation("move", "/news/spring"),
    Mutation("relabel", "/guide"),
    Mutation("reroute", "/team/ann"),
    Mutation("edit", "/products"),
]


@pytest.mark.timeout(120 + 120 * SETS)
def test_full_refresh_of_a_changed_site_equals_a_fresh_crawl(explorations, mapped):
    """The maps are equal after each set of mutations; 95% of all verdicts of the diffs are correct."""
    site, before = mapped
    judged, wrong = Counter(), {"states": [], "links": []}

    @settings(
        max_examples=max(1, SETS),
        # No shrinking: each attempt takes as long as the set itself.
        phases=[Phase.explicit, *[Phase.generate] * bool(SETS)],
        suppress_health_check=[HealthCheck.too_slow],
    )
    @given(mutations=MUTATIONS)
    @example(mutations=ALWAYS_TRIED)
    def check(mutations):
        site.done = mutations
        try:
            fresh, again = explorations(site), explorations.again(site, before)
            diff = explorations.diff(before, again)
            truth = Truth(site, before, fresh)
        finally:
            site.done = []
        assert export(again) == export(fresh)
        for kind, (verdicts, mistaken) in truth.of(diff).items():
            judged[kind] += verdicts
            wrong[kind] += [(mutations, *each) for each in mistaken]

    check()
    for kind, mistaken in wrong.items():
        print(f"{kind}: {judged[kind]} verdicts, {len(mistaken)} wrong", *mistaken, sep="\n  ")  # noqa: T201 - shown by the soak
        assert len(mistaken) <= 0.05 * judged[kind], mistaken


class Truth:
    """The correct diff, derived from the texts and links of the site before and after.

    An existing page without a link to it is gone from the map, with its links.
    """

    def __init__(self, site, before, fresh):
        self._root, self._nodes, self._observations = site.url, before.graph.nodes, before.observations
        reached = {node.url for node in fresh.graph.nodes.values()}
        self._reached = {p for p in PATHS if reached & {self._url(p), self._url(site.address(p))}}
        self._now, done = facts(site), site.done
        site.done = []
        self._was = facts(site)
        site.done = done

    def _url(self, path):
        return self._root + path.removeprefix("/")

    def _path(self, node_id):
        return "/" + self._nodes[node_id].url.removeprefix(self._root)

    def of(self, diff):
        """Return the number of verdicts on states and links, and the wrong ones."""
        return {"states": self.of_states(diff.states), "links": self.of_links(diff.edges)}

    def of_states(self, changes):
        """Return the number of verdicts on states, and the wrong ones."""
        told = [(change, *self._shown(change.before)) for change in changes if change.before]
        expected = [
            {"gone"} if now is None else {"match", "moved"} if now == was else {"changed"} for _, was, now in told
        ]
        wrong = [
            (c.verdict, e, was, now) for (c, was, now), e in zip(told, expected, strict=True) if c.verdict not in e
        ]
        return len(told), wrong

    def _shown(self, node_id):
        """Return the texts of a state before and now; None if it no longer exists."""
        path = self._path(node_id)
        was, now = self._was[path], self._now[path] if path in self._reached else Facts()
        if self._nodes[node_id].addressable:
            return was.texts, now.texts
        (opened,) = (text for text in was.opened if text in {s.text for s in self._observations[node_id].segments})
        return was.opened[opened], now.opened.get(opened)

    def of_links(self, changes):
        """Return the number of verdicts on links of pages, and the wrong ones."""
        wrong, judged = [], 0
        for change in changes:
            edge = change.before
            if edge is None or not edge.action.target or not self._nodes[edge.source].addressable:
                continue
            source, target = self._path(edge.source), self._path(edge.target)
            links = self._now[source].links if source in self._reached else {}
            label, leads_to = links.get(target, ("", ""))
            is_same = (label, leads_to) == (edge.action.name, target)
            expected = {"gone"} if not leads_to else {"match", "moved"} if is_same else {"changed"}
            judged += 1
            if change.verdict not in expected:
                wrong.append((source, target, change.verdict, expected))
        return judged, wrong


@dataclass(frozen=True)
class Facts:
    """Facts about a page."""

    texts: frozenset[str] | None = None
    opened: dict[str, frozenset[str]] = field(default_factory=dict)
    links: dict[str, tuple[str, str]] = field(default_factory=dict)


def facts(site):
    return {path: Facts(site.texts(path), site.opened(path), site.links(path)) for path in PATHS}


def test_an_unchanged_site_is_reused_and_gives_the_same_map(explorations, mapped):
    site, before = mapped
    again = explorations.again(site, before, share=0.11)
    assert export(again) == export(before)
    assert set(explorations.diff(before, again).counts()["states"]) == {"match"}
    assert again.refresh.actions["recalled"] > 5 * again.refresh.actions["asked"]
    assert again.refresh.verdicts == {"same": again.refresh.actions["asked"]}
    assert again.refresh.stale == 0.0
    assert again.report.counters["explore/activations"] < 0.2 * before.report.counters["explore/activations"]
    # Reused answers age; the age of re-asked answers is reset.
    ages = Counter(kept.track.age for kept in explorations.record(again).outcomes)
    assert ages == {1: again.refresh.actions["recalled"], 0: again.refresh.actions["asked"]}


def test_changes_of_a_sampled_page_are_found_by_the_default_refresh(explorations, mapped):
    site, before = mapped
    site.done = [Mutation("add", "/team"), Mutation("edit", "/news/today"), Mutation("menu", "/guide")]
    try:
        again = explorations.again(site, before, share=0.99)
    finally:
        site.done = []
    urls = [{node.url.removeprefix(site.url) for node in each.graph.nodes.values()} for each in (before, again)]
    assert urls[1] == urls[0] | {"spare/one"}
    changed = {change.after for change in explorations.diff(before, again).states if change.verdict == "changed"}
    urls = {again.graph.nodes[node_id].url.removeprefix(site.url) for node_id in changed}
    assert {"team", "news/today"} <= urls <= {"team", "news/today", "guide"}


def test_noise_is_not_a_change(explorations):
    with MutableSite(noisy=True) as site:
        site.mutate(*(Mutation("remove", section) for section in ("/products", "/team", "/news")))
        before = explorations(site)
        assert any(not node.addressable for node in before.graph.nodes.values())
        again = explorations.again(site, before)
    assert not [change for change in explorations.diff(before, again).states if change.verdict in {"changed", "gone"}]


@pytest.fixture(scope="module")
def restless(explorations):
    """A site with a page for every kind of noise, which differ on every load, and its capture."""
    with FixtureServer(noise_pages()) as site:
        yield Mapped((site, explorations(site)))


@pytest.mark.parametrize("share", [0.11, pytest.param(None, marks=pytest.mark.extended)], ids=["default", "full"])
def test_each_kind_of_noise_is_not_a_change(explorations, restless, share):
    site, before = restless
    diff = explorations.diff(before, explorations.again(site, before, share=share))
    assert {kind: set(counts) - {"match", "moved"} for kind, counts in diff.counts().items()} == {
        kind: set() for kind in diff.counts()
    }, [change for change in (*diff.states, *diff.edges) if change.verdict not in {"match", "moved"}]


@pytest.mark.parametrize(
    "answer",
    [Page("<h1>Out of order</h1>", status=500), pytest.param(Page(drop=True), marks=pytest.mark.extended)],
    ids=["500", "hangs up"],
)
def test_failing_page_and_pages_behind_it_are_kept_during_the_grace_period(explorations, answer):
    menu = "<button onclick=m.hidden=!m.hidden>Menu</button><ul id=m hidden><li>one<li>two<li>three</ul>"
    pages = {
        "/": "<a href=/a>First</a> <a href=/b>Second</a>",
        "/a": "<h1>A page</h1>",
        "/b": f"<h1>Another</h1><p>it is <a href=/c>Third</a>{menu}",
        "/c": "<h1>Behind it</h1>",
    }
    with FixtureServer(pages) as site:
        versions = [explorations(site)]
        site.pages["/b"] = answer
        for _ in range(2):
            versions.append(explorations.again(site, versions[-1], grace=1))
        # The page is down and not in the sample, but the actions on it are.
        record = explorations.record(versions[0])
        plan = RefreshPlan(loads=frozenset(), outcomes=frozenset(range(len(record.outcomes))))
        policy = SETTINGS.explore.url_policy
        versions.append(explorations(site, PriorExploration(record, plan, url_policy=policy, grace=1, name="actions")))
        site.pages |= {"/a": Page("gone", status=404), "/b": pages["/b"]}
        versions.append(explorations.again(site, versions[0], grace=1))
        states = [sorted(node.url.removeprefix(site.url) for node in each.graph.nodes.values()) for each in versions]
    whole = ["", "a", "b", "b", "c"]
    assert states == [whole, whole, ["", "a"], whole, ["", "b", "b", "c"]]
    assert [each.refresh.outages for each in versions] == [0, 1, int(answer.drop), 0, 0]


def test_forms_that_come_go_move_and_take_other_inputs_are_tools_that_changed(explorations):
    form = "<form action=/{0}><label>{1} <input name={1}></label><button>{0}</button></form>"
    with FixtureServer(
        {"/": form.format("find", "q") + form.format("count", "n") + form.format("rate", "stars")}
    ) as site:
        before = explorations(site)
        site.pages["/"] = (
            f"<p>{form.format('count', 'n')}</p>" + form.format("find", "text") + form.format("sort", "by")
        )
        again = explorations.again(site, before)
        assert {(each.verdict, each.tool.name) for each in explorations.diff(before, again).tools} == {
            ("changed", "find"), ("moved", "count"), ("gone", "rate"), ("added", "sort"),
        }  # fmt: skip


def test_an_action_is_repeated_before_its_outcome_counts_as_changed(explorations):
    script = """<h1>Home</h1><button onclick="show('one')">One</button> <button onclick="show('two')">Two</button>
      <div id=o></div><script>function show(n) {{
        o.innerHTML = n === 'one' ? {one} : '<p>always</p><p>the same</p><p>three lines</p>'; }}</script>"""
    steady = "'<h2>steady</h2>'"
    # Nested lists of a random word: independent of the session, and different each time.
    draw = "crypto.getRandomValues(new Uint8Array(20))"
    word = f"String.fromCharCode(...{draw}.map(n => 97 + n % 26))"
    drawn = f"Array.from({draw}, n => n % 2 ? '<ul><li>' : '<ol><li>').join({word})"
    with FixtureServer({"/": script.format(one=steady)}) as site:
        before = explorations(site)
        site.pages["/"] = script.format(one="'<dl><dt>other</dt><dd>things</dd></dl>'")
        changed = explorations.again(site, before)
        site.pages["/"] = script.format(one=drawn)
        unstable = explorations.again(site, before)
    assert changed.refresh.verdicts["differs"] == 1
    assert not changed.refresh.unstable
    ((*name, verdict, place),) = unstable.refresh.unstable
    assert verdict == "non_deterministic"
    assert [*name, place] in [[e.source, str(e.action), element_location(e.action)] for e in unstable.graph.edges]


def test_an_outcome_that_depends_on_the_session_is_no_change(explorations):
    """A page with session state: a session gets one article only, and a fresh session gets the recorded one."""
    page = """<h1>Papers</h1><button onclick="read('bread')">Bread</button><button onclick="read('milk')">Milk</button>
      <div id=o></div><script>const articles = {{bread: '<h2>Flour</h2><p>Water</p><p>Salt</p>',
        milk: '<ul><li>Cows</li><li>Goats</li><li>Sheep</li><li>Oats</li></ul>'}};
      const wall = '<dl><dt>Subscribe</dt><dd>to read on</dd></dl>';
      let left = {articles}, open;
      function read(n) {{ open = open === n ? '' : n; o.innerHTML = !open ? '' : left-- > 0 ? articles[n] : wall; }}
      </script>"""
    with FixtureServer({"/": page.format(articles=100)}) as site:
        before = explorations(site)
        site.pages["/"] = page.format(articles=1)
        again = explorations.again(site, before)
    (start,) = (node.id for node in before.graph.nodes.values() if not node.depth)
    edges = [edge for edge in explorations.diff(before, again).edges if edge.before and edge.before.source == start]
    assert {edge.before.action.name: edge.verdict for edge in edges} == {"Bread": "match", "Milk": "session_dependent"}
