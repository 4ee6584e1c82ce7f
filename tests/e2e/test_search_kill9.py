"""A killed tree search goes on from its file, and repeats no change of data.

`make soak-search` kills it at every request of its pages in turn (`WAYGRAPH_KILLS=all`); otherwise once, while the
server handles the request that changes data.
"""

import os
import subprocess
import sys
import threading

import pytest

from tests.sites.server import FixtureServer, Page
from waygraph.agents.run_record import AttemptEnd
from waygraph.agents.search import SearchTree
from waygraph.agents.search.tree import CandidateStatus

pytestmark = pytest.mark.extended

KILLS_AT_ALL = os.environ.get("WAYGRAPH_KILLS") == "all"
PATIENCE_S = 120.0
#: The first button sends data without a telling name, so that only its request shows what it does.
SILENT = "<button id=b>Figures</button><script>b.onclick = () => fetch('/count', {method: 'POST', body: 'x'})</script>"
START = f"""<!doctype html><title>Start</title><h1>Start</h1>
<form method=post action=/orders><button>Place order</button></form>
<a href=/items/1/delete>Tidy up</a> <a href=/shelf>Shelf</a> <a href=/other>Other</a> {SILENT}"""
SHELF = """<!doctype html><title>Shelf</title><h1>Shelf</h1><button onclick="panel.hidden = false">Details</button>
<p id=panel hidden>Made of oak <a href=/oak>Oak</a></p>"""
#: In the order in which the search requests them.
PAGES = {
    "/": START,
    "/shelf": SHELF,
    "/oak": "<!doctype html><title>Oak</title><h1>Oak</h1>",
    "/other": "<!doctype html><title>Other</title><h1>Other</h1>",
    "/count": "counted",
    "/orders": "<!doctype html><title>Ordered</title><h1>Ordered</h1>",
    "/items/1/delete": "<!doctype html><title>Deleted</title><h1>Deleted</h1>",
}
DEEDS = ("/orders", "/items/1/delete", "/count")


class KillingSite:
    """A site that holds one request and says so, so that the process that sent it can be killed meanwhile."""

    def __init__(self):
        self.reached, self.go_on = threading.Event(), threading.Event()
        self.held = ""
        self.server = FixtureServer({path: self._answer(path, body) for path, body in PAGES.items()})

    def hold(self, path):
        self.held = path
        self.reached.clear()
        self.go_on.clear()

    def _answer(self, path, body):
        def answer(_request):
            if path == self.held:
                self.held = ""
                self.reached.set()
                self.go_on.wait(PATIENCE_S)
            return Page(body)

        return answer

    def count(self, path):
        return sum(target == path for _, target in self.server.requests)


def start(site, tree_file):
    words = [sys.executable, "-m", "tests.search_process", site.server.url, str(tree_file)]
    return subprocess.Popen(words, stdout=subprocess.PIPE, text=True)


@pytest.fixture
def site():
    made = KillingSite()
    with made.server:
        yield made
        made.go_on.set()


@pytest.mark.parametrize("moments", [list(PAGES) if KILLS_AT_ALL else ["/orders"]], ids=["killed"])
@pytest.mark.timeout(600)
def test_a_search_that_is_killed_goes_on_and_repeats_no_change_of_data(site, tmp_path, moments):
    tree_file = tmp_path / "tree.json"
    for path in moments:
        site.hold(path)
        process = start(site, tree_file)
        assert site.reached.wait(PATIENCE_S), path
        process.kill()
        process.communicate()
        site.go_on.set()
        if path != "/":  # the first state is recorded after its page was loaded
            assert SearchTree.model_validate_json(tree_file.read_bytes()).end is None
    process = start(site, tree_file)
    said, _ = process.communicate(timeout=PATIENCE_S)
    assert (process.returncode, said.strip()) == (0, AttemptEnd.EXHAUSTED.value)
    assert {path: site.count(path) for path in DEEDS} == dict.fromkeys(DEEDS, 1)
    tree = SearchTree.model_validate_json(tree_file.read_bytes())
    assert {each.state.title for each in tree.nodes} >= {"Start", "Shelf", "Other", "Oak"}
    interrupted = [each for each in tree.candidates if each.status is CandidateStatus.INTERRUPTED]
    assert len(interrupted) >= 1
