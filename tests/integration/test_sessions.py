"""Sessions in eight kinds of storage, from the login to the map, its refresh, a walk and an agent."""

import asyncio
import json
import stat
from collections import Counter

import pytest

from tests.blobs import MemoryBlobs
from tests.browsers import LOOPBACK_ONLY
from tests.exploring import explore_with
from tests.sites.server import FixtureServer
from tests.sites.sessions import ACCOUNT, KINDS, SECRETS, broker_pages, leaving_pages, session_pages
from waygraph.cli import main
from waygraph.cli.commands.login import log_in, save_private
from waygraph.core.settings import EncodeSettings, Settings
from waygraph.index.store import Store
from waygraph.pipeline.browser.process.find import find_browser
from waygraph.pipeline.encode.registry import create_encoder
from waygraph.pipeline.explore.refresh.exploration_record import ExplorationRecord
from waygraph.pipeline.explore.refresh.prior_exploration import PriorExploration
from waygraph.pipeline.explore.refresh.sample import RefreshPlan
from waygraph.pipeline.jobs.publishing.draft import encode_draft


@pytest.fixture(scope="module")
def site():
    with FixtureServer(broker_pages()) as broker, FixtureServer(session_pages(broker.url)) as running:
        running.broker = broker.url.split("/")[2]
        yield running


async def sign_in(page):
    await page.fill("[name=user]", ACCOUNT)
    await page.fill("[type=password]", "pw")
    await page.click("text=Enter")
    await page.wait_for_selector(f"text=Hello {ACCOUNT}")


async def sign_in_and_close(page):
    await sign_in(page)
    await page.close()


def login_settings():
    """A headless shell takes the place of the browser with a window, which not every machine has."""
    return Settings(browser={"executable": find_browser().path})


@pytest.fixture(scope="module")
def session_file(site, tmp_path_factory):
    held = asyncio.run(log_in(site.url, login_settings(), initial=None, wait_for_user=sign_in))
    assert held.lost == ()
    file = tmp_path_factory.mktemp("session") / "site.login.json"
    save_private(file, json.dumps(held.state).encode())
    return file


def settings_with(site, file):
    explore = {"depth": 1, "storage_state": file, "scope_hosts": (site.url.split("/")[2], site.broker)}
    return Settings(browser=LOOPBACK_ONLY, explore=explore)


@pytest.fixture(scope="module")
def mapped(site, session_file, tmp_path_factory):
    """The map that the session shows, in a store."""
    location = str(tmp_path_factory.mktemp("sessions") / "maps")
    store = Store.open(location, create=True)
    site.requests.clear()
    settings = settings_with(site, session_file)
    capture = explore_with(settings, site.url, blobs=store.blobs)
    store.publish(encode_draft(capture, settings, create_encoder(EncodeSettings())))
    return location, capture, store, site.paths


def seen(paths):
    """Number of pages that held a session, by the kinds of storage that did."""
    return Counter(path.partition("?")[2] for path in paths if path.startswith("/seen"))


def texts(capture):
    return {each.url: "\n".join(segment.text for segment in each.segments) for each in capture.observations.values()}


def test_login_saves_all_kinds_of_storage_readable_by_their_owner_only(site, session_file):
    assert stat.S_IMODE(session_file.stat().st_mode) == 0o600
    saved = session_file.read_text()
    for secret in SECRETS[:-1]:  # the last one are bytes
        assert secret in saved
    assert json.loads(saved)["signedIn"] == {"url": site.url, "account": ACCOUNT, "password": False}


def test_a_closed_window_and_a_renewed_session_lose_nothing(site, session_file):
    held = asyncio.run(log_in(site.url, login_settings(), initial=None, wait_for_user=sign_in_and_close))
    saved, again = json.loads(session_file.read_text()), held.state

    def areas(state):
        entries = {each["origin"]: each for each in state["origins"]}
        return {(origin, area) for origin, each in entries.items() for area in each if each[area]}

    assert areas(again) == areas(saved)
    assert {each["name"] for each in again["cookies"]} == {each["name"] for each in saved["cookies"]}

    async def signed_in(page):
        await page.wait_for_selector(f"text=Hello {ACCOUNT}")

    renewed = asyncio.run(log_in(site.url, login_settings(), initial=session_file, wait_for_user=signed_in)).state
    assert areas(renewed) == areas(saved)


def test_every_page_of_the_map_is_signed_in_by_every_kind(mapped):
    _, capture, _, paths = mapped
    assert {url.rpartition("/")[2] for url in texts(capture)} == {"", "orders", "invoices"}
    for text in texts(capture).values():
        assert [kind for kind in KINDS if f"{kind}: signed in as Ann" not in text] == []
    assert seen(paths).keys() == {",".join(KINDS)}
    assert capture.report.advice == ()


def test_no_secret_of_any_kind_of_storage_is_stored(site, session_file):
    site.pages["/invoices"] = "<h1>Invoices</h1>" + "".join(f"<p>Paid with {secret}</p>" for secret in SECRETS)
    try:
        blobs = MemoryBlobs()
        capture = explore_with(settings_with(site, session_file), site.url, blobs=blobs)
    finally:
        site.pages["/invoices"] = session_pages(f"http://{site.broker}/")["/invoices"]
    kept = repr(capture).encode() + b"".join(blobs.values())
    assert b"Paid with ***" in kept
    assert [secret for secret in SECRETS if secret.encode() in kept] == []


def test_a_refresh_is_signed_in_by_every_kind(site, mapped, session_file):
    _, capture, store, _ = mapped
    record = ExplorationRecord.parse(store.blobs.get(capture.report.record))
    settings = settings_with(site, session_file)
    prior = PriorExploration(record, RefreshPlan(), url_policy=settings.explore.url_policy, grace=0, name="1")
    site.requests.clear()
    again = explore_with(settings, site.url, blobs=store.blobs, prior=prior)
    assert texts(again) == texts(capture)
    assert seen(site.paths).keys() == {",".join(KINDS)}


def test_a_teleport_is_signed_in_by_every_kind(site, mapped, session_file, capsys):
    location, capture, _, _ = mapped
    (orders,) = [node for node, each in capture.observations.items() if each.url.endswith("/orders")]
    site.requests.clear()
    words = ["teleport", capture.site, orders, "--store", location, "--storage-state", str(session_file)]
    assert main(words) == 0, capsys.readouterr().err
    assert seen(site.paths).keys() == {",".join(KINDS)}


def test_an_agent_is_signed_in_by_every_kind(site, mapped, session_file, capsys):
    site.requests.clear()
    words = ["do", site.url, "Orders", "--store", mapped[0], "--storage-state", str(session_file), "--json"]
    assert main(words) == 0, capsys.readouterr().err
    assert "/orders" in site.paths
    assert seen(site.paths).keys() == {",".join(KINDS)}


def test_actions_that_sign_out_in_the_browser_do_not_sign_out_what_comes_next(tmp_path):
    with FixtureServer(leaving_pages()) as site:
        origin = site.url.rstrip("/")
        store = {"name": "now", "autoIncrement": False, "indexes": [], "records": [{"key": "user", "value": "Ann"}]}
        entry = {
            "origin": origin,
            "localStorage": [],
            "sessionStorage": [{"name": "user", "value": "Ann"}],
            "indexedDB": [{"name": "users", "version": 1, "stores": [store]}],
        }
        file = tmp_path / "state.json"
        file.write_text(json.dumps({"cookies": [], "origins": [entry]}))
        settings = Settings(browser=LOOPBACK_ONLY, explore={"depth": 2, "storage_state": file})
        capture = explore_with(settings, site.url, blobs=MemoryBlobs())
    assert {url.rpartition("/")[2] for url in texts(capture)} == {"", "a", "b"}
    assert [url for url, text in texts(capture).items() if "Signed in as Ann" not in text] == []
    # The explorer itself puts back what an action stored for the tab, but not what it stored in a database.
    assert capture.report.counters["session/renewals"] > 0


def test_a_session_that_has_ended_is_told_while_exploring_and_in_the_report(site, session_file, tmp_path):
    state = json.loads(session_file.read_text())
    file = tmp_path / "ended.json"
    home = """<title>Home</title><form><input type=password></form><p>Please sign in</p><a href=/orders>Orders</a>
"""
    told = []
    left = [each for each in state["cookies"] if each["name"] == "plain"]
    with FixtureServer({"/": home, "/orders": home}) as ended:
        state["signedIn"]["url"] = ended.url
        file.write_text(json.dumps({**state, "cookies": left}))
        capture = explore_with(
            Settings(browser=LOOPBACK_ONLY, explore={"depth": 1, "storage_state": file}),
            ended.url,
            blobs=MemoryBlobs(),
            on_progress=lambda progress: told.append(progress.warnings),
        )
    (warning,) = capture.report.advice
    assert "it shows a password field" in warning
    assert "does not show the name of the account" in warning
    assert "waygraph login" in warning
    assert told[0] == (warning,)
