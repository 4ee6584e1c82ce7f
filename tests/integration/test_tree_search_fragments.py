"""Tree search on pages whose links to fragments show views: tabs of a script, and views that are read from the URL."""

import pytest

from tests.searching import search
from tests.sites.server import FixtureServer
from waygraph.agents.run_record import AttemptEnd
from waygraph.agents.search import SearchTree
from waygraph.agents.search.tree import CandidateStatus

#: Tabs by a script that does not read the fragment when the page is loaded; a link that only scrolls.
TABS = """<!doctype html><title>Tabs</title><h1 id=top>Tabs</h1>
<a href="#oak">Oak</a> <a href="#ash">Ash</a> <a href="#top">Top</a> <button onclick="more.hidden = false">More</button>
<p id=view>Nothing chosen</p><p id=more hidden>From one forest</p>
<script>
const views = { '#oak': 'Made of oak', '#ash': 'Made of ash' };
for (const link of document.querySelectorAll('a'))
  link.onclick = () => { view.textContent = views[link.hash] ?? view.textContent; };
</script>"""
#: Views that are read from the fragment.
VIEWS = """<!doctype html><title>Views</title><h1>Views</h1><a href="/start#here">Start</a>
<p id=view></p><button onclick="view.textContent += ', polished'">Polish</button>
<script>
const show = () => { view.textContent = 'Made of ' + (location.hash.slice(1) || 'nothing'); };
addEventListener('hashchange', show); show();
</script>"""
#: Tabs that take two clicks within 400 ms for a double click, whatever was clicked.
QUICK = """<!doctype html><title>Quick</title><h1>Quick</h1><a href="#oak">Oak</a> <a href="#ash">Ash</a>
<p id=view>Nothing chosen</p><script>
let latest = 0;
for (const link of document.querySelectorAll('a'))
  link.onclick = () => {
    view.textContent = Date.now() - latest < 400 ? 'Edit the tab' : `Made of ${link.hash.slice(1)}`;
    latest = Date.now();
  };
</script>"""
START = """<!doctype html><title>Start</title><h1 id=here>Start</h1><a href="/views#oak">Oak</a>
<a href="/views#ash">Ash</a> <a href="/views#ash">Ash again</a>"""


@pytest.fixture
def site():
    with FixtureServer({"/tabs": TABS, "/views": VIEWS, "/quick": QUICK, "/start": START}) as server:
        yield server


def tree_of(folder):
    return SearchTree.model_validate_json((folder / "tree.json").read_bytes())


def test_links_to_fragments_of_the_page_are_clicked_and_judged_by_what_it_shows_then(site, tmp_path):
    script = {
        "Tabs / Nothing chosen": {"Oak": 0.9, "Top": 0.8, "Ash": 0.7},
        "Tabs / Made of oak": {"More": 0.5},
    }
    run, _, text = search(site, script, path="/tabs", tree_file=tmp_path / "tree.json")
    assert [step.action for step in run.steps] == [
        'click link "Oak"',
        'click link "Top"',
        'click link "Ash"',
        'click button "More"',
    ]
    assert [step.status for step in run.steps] == ["done"] * 4
    assert run.end is AttemptEnd.EXHAUSTED
    assert "Made of oak" in text
    assert "From one forest" in text
    tree = tree_of(tmp_path)
    assert [node.same_as for node in tree.nodes] == [None, None, 0, None, None]
    assert [each.text for each in tree.candidates if "state that it came from" in each.reason] == ['click link "Top"']


def test_a_tab_whose_address_shows_another_one_is_reached_by_its_click(site, tmp_path):
    script = {"Tabs / Nothing chosen": {"Oak": 0.9, "Ash": 0.8}, "Tabs / Made of oak": {"More": 0.5}}
    search(site, script, path="/tabs", tree_file=tmp_path / "tree.json")
    tree = tree_of(tmp_path)
    assert [(each.target, each.tried, each.arrived) for each in tree.backtracks] == [
        (0, ["url:0"], True),
        (1, ["url:1", "url:0"], True),
    ]
    assert [each.loads for each in tree.nodes[:2]] == ["yes", "no"]


def test_two_fragments_that_show_two_views_are_two_pages(site, tmp_path):
    oak, ash = site.at("/views#oak"), site.at("/views#ash")
    script = {
        "Start": {f"goto {oak}": 0.9, f"goto {ash}": 0.8, "Ash again": 0.3},
        "Views / Made of oak": {f"goto {ash}": 0.95, "Polish": 0.7},
        "Views / Made of ash": {"Polish": 0.5},
    }
    run, _, _ = search(site, script, path="/start", tree_file=tmp_path / "tree.json")
    assert [step.action for step in run.steps] == [
        *(f"goto [{oak}]", f"goto [{ash}]", 'click button "Polish"', 'click button "Polish"'),
    ]
    tree = tree_of(tmp_path)
    assert [(each.target, each.tried, each.arrived) for each in tree.backtracks] == [
        (1, ["url:1"], True),
        (2, ["url:2"], True),
    ]
    visited = [each.text for each in tree.candidates if each.status is CandidateStatus.DROPPED]
    assert visited == [f"goto [{ash}]", 'click link "Ash again"']


def test_two_clicks_one_after_the_other_are_no_double_click(site, tmp_path):
    script = {"Quick / Nothing chosen": {"Oak": 0.9}, "Quick / Made of oak": {"Ash": 0.8}}
    _, _, text = search(site, script, path="/quick", tree_file=tmp_path / "tree.json")
    assert "Made of ash" in text
