"""`waygraph teleport` walks a real browser to a state of a small site; the exit code says whether it arrived."""

import json
import os

import pytest

from tests.browsers import LOOPBACK_ONLY
from tests.exploring import explore_with
from tests.sites.server import FixtureServer
from waygraph.cli import main
from waygraph.core.replay_file import ReplayFile
from waygraph.core.settings import EncodeSettings, Settings
from waygraph.index.store import Store
from waygraph.pipeline.encode.registry import create_encoder
from waygraph.pipeline.jobs.publishing.draft import encode_draft

HOME = '<title>Home</title><h1>Home</h1><a href="/prices">Prices</a>'
PRICES = """<title>Prices</title><h1>Prices</h1>
<button onclick="document.getElementById('d').hidden = false">Discounts</button><p id="d" hidden>Ten percent off</p>"""


@pytest.fixture(scope="module")
def site():
    with FixtureServer({"/": HOME, "/prices": PRICES}) as running:
        yield running


@pytest.fixture(scope="module")
def mapped(site, tmp_path_factory):
    """The site's map in a store, and the id of the state that only a click leads to."""
    location = str(tmp_path_factory.mktemp("teleport") / "maps")
    store = Store.open(location, create=True)
    settings = Settings(browser=LOOPBACK_ONLY, explore={"depth": 2})
    capture = explore_with(settings, site.url, blobs=store.blobs)
    store.publish(encode_draft(capture, settings, create_encoder(EncodeSettings())))
    (discounts,) = [
        o.node_id for o in capture.observations.values() if any("Ten percent" in s.text for s in o.segments)
    ]
    return location, capture.site, discounts


@pytest.fixture
def teleport(mapped, capsys):
    location, key, _ = mapped

    def run(*words):
        code = main(["teleport", key, *words, "--store", location])
        return code, *capsys.readouterr()

    return run


def test_teleport_arrives_and_saves_a_screenshot(teleport, mapped, tmp_path):
    picture = tmp_path / "there.png"
    code, out, err = teleport(mapped[2], "--screenshot", str(picture))
    assert (code, err) == (0, "")
    assert f"Arrived at [{mapped[2][:8]}]." in out
    assert picture.read_bytes().startswith(b"\x89PNG")


def replay(file):
    return ReplayFile.model_validate_json(file.read_text())


def test_without_goto_teleport_clicks_from_the_start_page(teleport, mapped, tmp_path):
    trace = tmp_path / "walk.json"
    code, out, _ = teleport(mapped[2], "--no-goto", "--json", "--trace", str(trace))
    answer = json.loads(out)
    assert code == 0
    assert (answer["outcome"], answer["node_id"], answer["screenshot"]) == ("arrived", mapped[2], None)
    assert [step["action"] for step in answer["steps"]] == ['click link "Prices"', 'click button "Discounts"']
    recorded = replay(trace)
    first, second = recorded.steps
    assert (recorded.kind, recorded.outcome.status, recorded.outcome.good) == ("teleport", "arrived", True)
    assert [step.action for step in recorded.steps] == [step["action"] for step in answer["steps"]]
    assert (first.before.title, first.after.title, first.expected.title) == ("Home", "Prices", "Prices")
    assert (second.before, second.after.node_id, second.expected.node_id) == (first.after, mapped[2], mapped[2])
    shown = {page.screenshot for step in recorded.steps for page in (step.before, step.after, step.expected)}
    assert shown == set(recorded.images)
    assert len(shown) >= 3


@pytest.mark.parametrize("start", ["/prices", "STATE"])
def test_teleport_starts_at_the_given_state_or_url(teleport, mapped, site, start):
    code, out, _ = teleport(site.at("/"), "--from", mapped[2] if start == "STATE" else start, "--json")
    assert code == 0
    assert json.loads(out)["url"] == site.url


def test_a_changed_page_is_exit_code_10(teleport, mapped, site, tmp_path):
    trace = tmp_path / "walk.json"
    site.pages["/prices"] = PRICES.replace("Discounts", "Vouchers").replace("Ten percent off", "Nothing here")
    try:
        code, out, err = teleport(mapped[2], "--no-goto", "--trace", str(trace))
        assert code == 10
        assert "Arrived" not in out
        last = replay(trace).steps[-1]
        assert (last.agrees, last.status, last.after.title) == (False, "failed", "Prices")
        assert last.message
        assert "waygraph index" in err
        code, out, _ = teleport(mapped[2], "--no-goto", "--json")
        assert code == 10
        assert json.loads(out)["outcome"] in {"failed", "arrived_elsewhere"}
    finally:
        site.pages["/prices"] = PRICES


def test_a_site_that_is_down_is_exit_code_4(teleport, mapped):
    code, _, err = teleport(mapped[2], "--from", "http://127.0.0.1:9/")
    assert code == 4
    assert "hint: " in err


def test_teleport_without_a_browser_names_what_to_install(teleport, mapped, monkeypatch):
    monkeypatch.setenv("WAYGRAPH_BROWSER__EXECUTABLE", "/nonexistent/chromium")
    code, _, err = teleport(mapped[2])
    assert code == 6
    assert "install" in err


def test_a_screenshot_that_cannot_be_written_gives_one_message(teleport, mapped):
    code, _, err = teleport(mapped[2], "--screenshot", os.devnull + "/there.png")
    assert code == 2
    assert "--screenshot" in err
