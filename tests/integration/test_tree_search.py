"""Tree search in a real browser: returning to states, the choice of answers, dead ends, and proposed addresses."""

import pytest

from tests.searching import NoReward, Scripted, search
from tests.sites.server import FixtureServer, Page
from waygraph.agents.run_record import AttemptEnd
from waygraph.agents.search import Judgement, SearchTree
from waygraph.agents.search.tree import CandidateStatus
from waygraph.core.settings import ExploreSettings
from waygraph.pipeline.explore.policies.scope import Scope

PANEL = """<!doctype html><title>Shelf</title><h1>Shelf</h1>
<button onclick="panel.hidden = false">Details</button>
<div id=panel hidden><p>Made of oak</p><button onclick="more.hidden = false">More</button></div>
<p id=more hidden>From one forest</p>"""
START = "<!doctype html><title>Start</title><h1>Start</h1><a href=/shelf>Shelf</a> <a href=/other>Other</a>"
OTHER = "<!doctype html><title>Other</title><h1>Other</h1>"
BROKEN = "<!doctype html><title>Broken</title><h1>Broken</h1><a href=/gone>Gone</a> <a href=/other>Other</a>"


@pytest.fixture
def site():
    with FixtureServer({"/": START, "/shelf": PANEL, "/other": OTHER, "/broken": BROKEN}) as server:
        yield server


BACKTRACKING = {
    "Start": {"Shelf": 0.9, "Other": 0.8},
    "Shelf": {"Details": 0.95},
    "Shelf / Made of oak": {"More": 0.5},
    "Shelf / From one forest": {},
}


def test_it_returns_to_a_state_without_an_address_and_goes_on_there(site, tmp_path):
    run, tabs, text = search(site, BACKTRACKING, tree_file=tmp_path / "tree.json")
    assert [step.action for step in run.steps] == [
        'click link "Shelf"',
        'click button "Details"',
        'click link "Other"',
        'click button "More"',
    ]
    assert [step.status for step in run.steps] == ["done"] * 4
    assert (run.end, tabs) == (AttemptEnd.EXHAUSTED, 1)
    assert "From one forest" in text
    tree = SearchTree.model_validate_json((tmp_path / "tree.json").read_bytes())
    assert [(each.target, each.tried, each.arrived) for each in tree.backtracks] == [
        (0, ["url:0"], True),
        (2, ["url:1"], True),
    ]
    assert [each["tried"] for each in run.steps[3].details["backtracks"]] == [["url:1"]]


def test_a_state_that_is_not_shown_again_is_given_up_and_the_tabs_stay_as_they_were(site, tmp_path):
    async def change(step, observation):
        if step.action == 'click link "Other"':
            site.pages["/shelf"] = "<!doctype html><title>Shelf</title><h1>Closed</h1>"

    run, tabs, _ = search(site, BACKTRACKING, on_step=change, tree_file=tmp_path / "tree.json")
    tree = SearchTree.model_validate_json((tmp_path / "tree.json").read_bytes())
    assert not tree.backtracks[-1].arrived
    assert tree.nodes[1].loads == "no"
    assert next(each for each in tree.candidates if "More" in each.text).status is CandidateStatus.DROPPED
    assert (len(run.steps), tabs, run.url) == (3, 1, site.at("/other"))


TIPPED = """<!doctype html><title>Shelf</title><h1>Shelf</h1><h2>{}</h2><a href=/other>Other</a>
<button onclick="panel.hidden = false">Details</button> <button onclick="help.hidden = false">Help</button>
<div id=panel hidden><p>Made of oak</p></div><p id=help hidden>Call us</p>"""


def test_a_tip_that_is_another_one_on_every_load_is_no_part_of_what_an_action_changed(site, tmp_path):
    tips = iter(("Cut in spring", "Water in the morning", "Sow at once", "Dig in autumn", "Rest in winter"))
    site.pages["/shelf"] = lambda _: TIPPED.format(next(tips))
    script = {"Shelf": {"Other": 0.9, "Details": 0.8, "Help": 0.7}, "Shelf / Made of oak": {}, "Shelf / Call us": {}}
    run, _, _ = search(site, script, path="/shelf", tree_file=tmp_path / "tree.json")
    assert [step.action for step in run.steps] == [
        *('click link "Other"', 'click button "Details"', 'click button "Help"'),
    ]
    tree = SearchTree.model_validate_json((tmp_path / "tree.json").read_bytes())
    assert [each.arrived for each in tree.backtracks] == [True, True]


#: Draws its shelves at once when it is loaded first, and later long after the page has settled.
LATE = """<!doctype html><title>Shelf</title><h1>Shelf</h1><a href=/other>Other</a>
<button onclick="more.hidden = false">Details</button> <div id=list></div><p id=more hidden>From one forest</p><script>
const draw = () => { list.innerHTML = '<button>Oak</button><button>Ash</button>'; };
localStorage.seen ? setTimeout(draw, 2500) : draw();
localStorage.seen = 1;
</script>"""


def test_on_the_last_way_a_return_waits_for_what_the_page_adds_after_it_has_settled(site, tmp_path):
    site.pages["/shelf"] = LATE
    script = {"Shelf": {"Other": 0.8, "Details": 0.5}, "Shelf / From one forest": {}}
    run, _, text = search(site, script, path="/shelf", tree_file=tmp_path / "tree.json")
    assert [step.action for step in run.steps] == ['click link "Other"', 'click button "Details"']
    assert "Ash" in text
    tree = SearchTree.model_validate_json((tmp_path / "tree.json").read_bytes())
    assert [(each.tried, each.arrived) for each in tree.backtracks] == [(["url:0"], True)]


def test_the_best_answer_ends_the_search_on_its_page(site):
    script = {
        "Start": {"Shelf": 0.9, "Other": 0.8, "stop nothing": 0.1},
        "Shelf": {"stop oak": 0.1},
        "Other": {"stop other": 0.1},
    }

    class ByTitle(NoReward):
        async def judge_states(self, task, states):  # noqa: ARG002
            return Judgement(tuple({"Shelf": 0.7}.get(each.title, 0.2) for each in states))

    run, tabs, _ = search(site, script, reward=ByTitle())
    assert (run.end, run.answer, run.url, tabs) == (AttemptEnd.ANSWERED, "oak", site.at("/shelf"), 1)


def test_two_generators_that_agree_on_an_answer_end_the_search(site):
    class Second(Scripted):
        name = "second"

    script = {"Start": {"stop done": 0.1}}
    run, _, _ = search(site, [Scripted(script), Second(script)])
    assert (run.end, run.answer, run.steps) == (AttemptEnd.ANSWERED, "done", ())


def test_errors_of_the_server_and_pages_out_of_scope_are_dead_ends(site):
    elsewhere = "http://127.0.0.1:9/"
    script = {
        "Broken": {"Gone": 0.9, f"goto {elsewhere}": 0.8, "Other": 0.1},
        "Not found": {"goto http://x.example": 1},
    }
    scope = Scope.of(site.url.split("/")[2], ExploreSettings())
    generator = Scripted(script)
    run, _, _ = search(site, [generator], path="/broken", session_options={"scope": scope})
    assert [step.action for step in run.steps] == ['click link "Gone"', 'click link "Other"']
    assert generator.asked == ["Broken", "Other"]


GOTO = """<!doctype html><title>Start</title><h1>Start</h1><a href=/other>Other</a>"""
ARTICLE = "".join(f"<p>Part {number}: what the error means, and what to do about it." for number in range(80))
#: Answers by path, and the reason why an address is not proposed; empty: it is.
TARGETS = {
    "/other": (OTHER, ""),
    "/missing": (Page("<title>x</title>", status=404), "answers with the error 404"),
    "/soft": ("<!doctype html><title>Shop</title><h1>404 Page not found</h1>", "shows an error page"),
    "/article": (f"<!doctype html><title>Page not found</title>{ARTICLE}", ""),
    "/moved": (Page(redirect="/logout"), "is not loaded (hazard)"),
    "/out": (Page(redirect="http://127.0.0.1:9/"), "is not loaded (external)"),
}


def test_proposed_addresses_are_loaded_beside_and_kept_if_they_answer_with_a_page(site, tmp_path):
    site.pages |= {"/": GOTO, **{path: page for path, (page, _) in TARGETS.items()}}
    proposals = {f"goto {site.at(path)}": 0.1 for path in TARGETS}
    scope = Scope.of(site.url.split("/")[2], ExploreSettings())
    run, tabs, _ = search(
        site, {"Start": {**proposals, "Other": 0.9}}, session_options={"scope": scope}, tree_file=tmp_path / "tree.json"
    )
    tree = SearchTree.model_validate_json((tmp_path / "tree.json").read_bytes())
    kept = [each.text for each in tree.candidates if each.text.startswith("goto")]
    assert kept == [f"goto [{site.at(path)}]" for path, (_, problem) in TARGETS.items() if not problem]
    assert (tabs, site.paths.count("/soft"), "/logout" in site.paths) == (1, 1, False)
    assert [step.action for step in run.steps] == ['click link "Other"', kept[1]]


def test_an_address_that_changes_data_is_not_loaded_to_find_out_whether_it_answers(site):
    site.pages |= {"/": GOTO, "/items/1/delete": "gone"}
    script = {"Start": {f"goto {site.at('/items/1/delete')}": 0.9, "Other": 0.1}}
    run, _, _ = search(site, script, session_options={"destructive": "allow"})
    assert (site.paths.count("/items/1/delete"), site.paths[-1]) == (1, "/items/1/delete")
    assert run.steps[-1].details["changed"] == [f"GET {site.at('/items/1/delete')}"]
