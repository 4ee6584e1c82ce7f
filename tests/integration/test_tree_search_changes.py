"""Changes of data by a tree search: they come after everything safe, once, and are noticed by their requests.

One trap of each kind; `make soak-search` tries all of `tests/sites/destructive.py` (`WAYGRAPH_TRAPS=all`).
"""

import asyncio
import os

import pytest

from tests.browsers import BROWSERS
from tests.searching import Named, Scripted, search, searched
from tests.sites.destructive import KINDS, SAFE_NAMES, TRAPS, deeds, trap_pages
from tests.sites.server import FixtureServer, Page
from waygraph.agents.run_record import AttemptEnd
from waygraph.agents.search import SearchTree
from waygraph.agents.search.tree import CandidateStatus

FIRST_OF_KIND = tuple(next(trap for trap in TRAPS if trap.kind == kind) for kind in KINDS)
TRIED = TRAPS if os.environ.get("WAYGRAPH_TRAPS") == "all" else FIRST_OF_KIND
SILENT = (
    "<button id=b>Show figures</button><script>b.onclick = () => fetch('/trap', {method: 'POST', body: 'x=1'})</script>"
)


@pytest.fixture
def site():
    other = "<!doctype html><title>Other</title><h1>Other</h1>"
    with FixtureServer({"/": "", "/other": other}) as server:
        yield server


@pytest.mark.parametrize("trap", TRIED, ids=str)
def test_what_changes_data_comes_after_everything_safe_and_once(trap):
    scores = {trap.name: 0.9, **dict.fromkeys(SAFE_NAMES, 0.1)}
    with FixtureServer(trap_pages(trap)) as server:
        run, _, _ = search(server, [Named(scores)], session_options={"destructive": "allow"})
        done = deeds(trap, server)
    assert len(done) == 1
    changing = [number for number, step in enumerate(run.steps) if step.details["changed"]]
    assert len(changing) == 1
    before = {step.action for step in run.steps[: changing[0]]}
    assert before == {'click link "Other"', 'click link "Deeper"', 'click button "Details"', 'click button "More"'}


@pytest.mark.parametrize("trap", TRIED, ids=str)
def test_what_changes_data_is_left_alone_unless_the_session_allows_it(trap):
    with FixtureServer(trap_pages(trap)) as server:
        run, _, _ = search(server, [Named({trap.name: 0.9, "Other": 0.1})])
        assert deeds(trap, server) == []
    assert [step.action for step in run.steps] == ['click link "Other"']


def test_an_answer_is_given_when_leaving_its_page_would_lose_it_after_a_change(site):
    sends = "fetch('/trap', {method: 'POST', body: 'x'}).then(() => out.textContent = 'Sent')"
    page = f'<title>Send</title><a href=/other>Other</a><button onclick="{sends}">Go</button><p id=out>Not yet</p>'
    site.pages |= {"/": page, "/trap": "ok"}
    script = {"Send / Not yet": {"Go": 0.9}, "Send / Sent": {"Other": 0.9, "stop done": 0.1}}
    run, _, _ = search(site, script)
    assert [step.action for step in run.steps] == ['click button "Go"']
    assert (run.end, run.answer) == (AttemptEnd.ANSWERED, "done")


def test_a_change_that_only_its_request_shows_begins_the_search_anew(site, tmp_path):
    site.pages |= {"/": f"<!doctype html><title>Silent</title><a href=/other>Other</a>{SILENT}", "/trap": "ok"}
    script = {"Silent": {"Show figures": 0.9, "Other": 0.1}}
    run, _, _ = search(site, script, tree_file=tmp_path / "tree.json")
    tree = SearchTree.model_validate_json((tmp_path / "tree.json").read_bytes())
    assert run.steps[0].details["changed"] == [f"POST {site.at('/trap')}"]
    assert (tree.changes, tree.root, tree.budget) == (1, 1, 3)
    assert site.mutations == 1
    assert [step.action for step in run.steps] == ['click button "Show figures"', 'click link "Other"']


#: The button sends data and may open a panel that no load shows.
SENDS = """<!doctype html><title>Sends</title><a href=/other>Other</a> <button onclick="
  fetch('/trap', {method: 'POST', body: 'x=1'}).then(() => { panel.hidden = %s })">Show figures</button>
<p id=panel hidden>12 shelves, 3 racks</p>"""


@pytest.mark.parametrize(
    ("hidden", "loads", "returns"),
    [
        ("false", "no", [[]]),
        pytest.param("true", "yes", [["url:1"]], marks=pytest.mark.extended),
    ],
)
def test_a_search_knows_whether_a_load_shows_the_state_after_a_change_of_data(site, tmp_path, hidden, loads, returns):
    site.pages |= {"/": SENDS % hidden, "/trap": "ok", "/more": "<!doctype html><title>More</title>"}
    site.pages["/"] += "<a href=/more>More</a>"
    scores = {"Show figures": 0.9, "Other": 0.8, "More": 0.7}
    search(site, [Named(scores)], tree_file=tmp_path / "tree.json")
    tree = SearchTree.model_validate_json((tmp_path / "tree.json").read_bytes())
    assert (tree.root, tree.nodes[1].loads, site.mutations) == (1, loads, 1)
    assert [each.tried for each in tree.backtracks] == returns


def test_an_address_that_changes_data_is_not_loaded_to_find_out_what_it_shows(site):
    form = "<form method=post action=/items/1/delete><button>Delete</button></form>"
    site.pages |= {"/": f"<!doctype html><title>Item</title>{form}", "/items/1/delete": "<title>Deleted</title>"}
    search(site, [Named({"Delete": 0.9})], session_options={"destructive": "allow"})
    assert site.paths.count("/items/1/delete") == 1


def test_a_search_that_was_killed_while_it_changed_data_goes_on_without_repeating_it(site, tmp_path):
    sent = asyncio.Event()

    def hold(request):
        BROWSERS._loop.call_soon_threadsafe(sent.set)
        return Page("<title>Sent</title>")

    body = "<!doctype html><title>Trap</title><form method=post action=/trap><button>Go on</button></form>"
    site.pages |= {"/": body, "/trap": hold}
    script = {"Trap": {"Go on": 0.9}}
    options = {"session_options": {"destructive": "allow"}, "tree_file": tmp_path / "tree.json"}

    async def killed():
        task = asyncio.ensure_future(searched(site, [Scripted(script)], **options))
        await sent.wait()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    BROWSERS.run(killed())
    left = SearchTree.model_validate_json((tmp_path / "tree.json").read_bytes())
    assert [each.status for each in left.candidates] == [CandidateStatus.BEGUN]
    run, _, _ = search(site, script, **options)
    assert site.mutations == 1
    assert run.end is AttemptEnd.EXHAUSTED
    assert [step.status for step in run.steps] == ["failed"]
