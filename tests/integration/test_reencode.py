"""`waygraph reencode` publishes other vectors for the same maps, also after kills and interrupts.

Commands that are killed or interrupted run in a process of their own.
"""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.patch_encoder import NOT_A_NUMBER
from tests.screenshot_map import colours, publish
from tests.tiny_jina import make_checkpoint
from waygraph.cli.entry import run as waygraph
from waygraph.core.settings import Settings
from waygraph.index.graph import Action, Description, Lead, Tool, lead_id
from waygraph.index.store import MapVersion, Store
from waygraph.index.store.layout import VECTORS_FILE
from waygraph.pipeline.encode.text.descriptions import description_key
from waygraph.pipeline.jobs import run_reencode
from waygraph.pipeline.jobs.encoding.vector_spool import spool_folder
from waygraph.pipeline.jobs.events import SiteEncoding
from waygraph.pipeline.jobs.publishing.draft import described_draft

pytestmark = pytest.mark.extended

SITES = ("a.example", "b.example:8080")
STATES = 60
PATCH, SLOW = "tests.patch_encoder:create", "tests.patch_encoder:create_slow"
#: Longer than a run takes on a busy machine; nothing waits for it to pass.
PATIENCE = 180


def store_of(folder: Path) -> Store:
    store = Store.open(str(folder / "maps"), create=True)
    for site in SITES:
        publish(store, site, colours(STATES))
    return store


@pytest.fixture(scope="module", autouse=True)
def small_batches():
    """Encode few states at once, without Ray if a command does not ask for it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("WAYGRAPH_JOBS__STATES_PER_BATCH", "8")
        patch.setenv("WAYGRAPH_JOBS__RAY", "false")
        yield


@pytest.fixture
def reencode(capsys):
    """Run `waygraph reencode` in this process; return its report."""

    def command(store: Store, *options: str, code: int = 0) -> dict:
        capsys.readouterr()
        ended = waygraph(["reencode", "--store", store.location, "--json", *options])
        said = capsys.readouterr()
        assert ended == code, said.err
        return json.loads(said.out)

    return command


@pytest.fixture
def start():
    """Start `waygraph reencode` in a process of its own, which is killed after the test."""
    started: list[subprocess.Popen] = []

    def begin(store: Store, *options: str) -> subprocess.Popen:
        started.append(start_reencode(store, *options))
        return started[-1]

    yield begin
    for process in started:
        if process.poll() is None:
            process.kill()
        process.communicate()


def start_reencode(store: Store, *options: str) -> subprocess.Popen:
    return subprocess.Popen(
        [sys.executable, "-m", "waygraph", "reencode", "--store", store.location, "--json", *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env={name: value for name, value in os.environ.items() if not name.startswith("RAY_")},
    )


def with_tools(store: Store, site: str, pixels: Sequence[tuple[int, int, int]], *names: str) -> MapVersion:
    """Publish a map whose states have tools, without vectors; return it."""
    publish(store, site, pixels)
    version = store.read(site)
    states = tuple(version.graph.nodes)
    tools = [Tool(f"{n:032x}", name, name, "", {}, "script", states, f"http://{site}") for n, name in enumerate(names)]
    store.publish(replace(described_draft(version, {}, {}, {}), tools={tool.id: tool for tool in tools}))
    return store.read(site)


def spooled(store: Store) -> dict[str, int]:
    """Return encoded and unpublished batches by site."""
    return {site: sum(1 for _ in spool_folder(store.location, site).rglob("*.parquet")) for site in SITES}


def wait_until_spooled(store: Store, process: subprocess.Popen, batches: int) -> None:
    """Wait until a run has encoded that many batches; check that every site stays readable."""
    deadline = time.monotonic() + PATIENCE
    while sum(spooled(store).values()) < batches and process.poll() is None:
        assert time.monotonic() < deadline
        for site in SITES:
            version = store.read(site)
            assert len(version.pages) == (0 if version.manifest.version == 1 else STATES)
        time.sleep(0.02)  # a poll: nothing tells us of a file


def finish(process: subprocess.Popen, code: int = 0) -> dict:
    out, errors = process.communicate(timeout=PATIENCE)
    assert process.returncode == code, errors
    return json.loads(out)


def vectors_file(store: Store, site: str) -> str:
    """Return the SHA-256 of the file of published vectors."""
    return store.manifest(site).files[VECTORS_FILE].sha256


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    """Published vectors and report of an undisturbed command."""
    store = store_of(tmp_path_factory.mktemp("undisturbed"))
    return store, finish(start_reencode(store, "--all", "--encoder", PATCH))


def test_each_site_gets_a_new_version_with_the_same_graph_and_other_vectors(undisturbed):
    store, report = undisturbed
    assert [(s["site"], s["status"]) for s in report["sites"]] == [(site, "published") for site in SITES]
    assert report["totals"]["states"] == 2 * STATES
    for site in SITES:
        before, after = store.read(site, 1), store.read(site)
        assert after.manifest.version == 2
        assert after.graph.nodes == before.graph.nodes
        assert list(after.graph.edges) == list(before.graph.edges)
        assert after.observations == before.observations
        assert after.pages.keys() == before.graph.nodes.keys()
        assert (after.manifest.encoder.name, after.manifest.encoder.fingerprint) == ("patch", "patch-1")
        assert after.manifest.settings["explore"] == {"depth": 1}
        assert after.manifest.settings["domain"] == "example"
        assert after.manifest.settings["encode"]["encoder"] == PATCH
        assert after.manifest.report["seconds"] == 1.5
        assert after.manifest.report["reencoded_from"] == 1
        assert not spool_folder(store.location, site).exists()
    assert report["encoding"]["states"] == 2 * STATES
    assert (Path(store.location) / "runs" / report["run_id"] / "report.json").exists()


def test_site_with_current_vectors_is_unchanged(undisturbed, reencode):
    store, _ = undisturbed
    report = reencode(store, SITES[0], f"http://{SITES[1]}/7", "--encoder", PATCH)
    assert [(s["status"], s["publication"]) for s in report["sites"]] == [("unchanged", None)] * 2
    assert [store.head(site) for site in SITES] == [2, 2]


@pytest.mark.parametrize("engine", ["--no-ray", "--ray"])
def test_killed_run_is_resumed_and_gives_the_same_bytes(undisturbed, start, reencode, tmp_path, engine):
    store = store_of(tmp_path)
    first = start(store, "--all", "--encoder", SLOW, engine)
    wait_until_spooled(store, first, 3)
    first.kill()
    first.communicate()
    kept = spooled(store)
    assert sum(kept.values()) >= 3
    assert [store.head(site) for site in SITES] == [1, 1]

    report = reencode(store, "--all", "--encoder", SLOW)
    assert {s["site"]: (s["status"], s["publication"]["streamed"]) for s in report["sites"]} == {
        site: ("published", min(STATES, 8 * kept[site])) for site in SITES
    }
    assert report["encoding"]["states"] == 2 * STATES - sum(min(STATES, 8 * batches) for batches in kept.values())
    for site in SITES:
        assert vectors_file(store, site) == vectors_file(undisturbed[0], site)


@pytest.mark.parametrize("engine", ["--no-ray", "--ray"])
def test_interrupt_stops_the_run_and_keeps_encoded_states(start, tmp_path, engine):
    store = store_of(tmp_path)
    process = start(store, "--all", "--encoder", SLOW, engine)
    wait_until_spooled(store, process, 1)
    process.send_signal(signal.SIGINT)
    report = finish(process, code=130)
    assert report["interrupted"]
    assert "interrupted" in {site["status"] for site in report["sites"]}
    assert sum(spooled(store).values())


def test_version_published_during_a_run_is_not_replaced_by_an_older_graph(tmp_path):
    store = store_of(tmp_path)
    published = []

    def publish_once(event):
        if isinstance(event, SiteEncoding) and not published:  # its graph has been read
            published.append(publish(store, SITES[0], colours(STATES + 1)))

    settings = Settings(store=store.location, encode={"encoder": SLOW})
    report = run_reencode([SITES[0]], settings=settings, on_event=publish_once)
    assert published == [2]
    version = store.read(SITES[0])
    assert (version.manifest.version, len(version.pages)) == (4, STATES + 1)
    assert version.manifest.report["reencoded_from"] == 2
    assert report.sites[0].publication.version == 4


def test_damaged_screenshot_leaves_only_its_state_without_vectors(reencode, tmp_path):
    store = store_of(tmp_path)
    victim = list(store.read(SITES[0]).observations.values())[3]
    (blob,) = (Path(store.location) / "blobs").rglob(victim.screenshot)
    blob.write_bytes(b"not what it was")
    report = reencode(store, SITES[0], "--encoder", PATCH)
    made = report["sites"][0]["publication"]
    assert (made["without_vectors"], made["encoded"]) == (1, STATES - 1)
    assert made["failures"][0]["node_id"] == victim.node_id
    assert "does not match its name" in made["failures"][0]["reason"]
    version = store.read(SITES[0])
    assert version.graph.nodes.keys() - version.pages.keys() == {victim.node_id}


def test_site_without_encodable_states_fails_and_keeps_its_version_whatever_its_tools_are(reencode, tmp_path):
    store = store_of(tmp_path)
    publish(store, "c.example", [NOT_A_NUMBER])
    with_tools(store, "d.example", [NOT_A_NUMBER], "paint")
    report = reencode(store, "--all", "--encoder", PATCH, code=5)
    assert [s["status"] for s in report["sites"]] == ["published", "published", "failed", "failed"]
    assert "No state of d.example could be encoded" in report["sites"][3]["error"]["message"]
    assert (store.head("c.example"), store.head("d.example")) == (1, 2)


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["--encoder", "patch"], 2, "No site was named"),
        (["--all", "a.example"], 2, "Both sites and --all"),
        (["--all", "--encoder", "bert-xxl"], 2, "There is no encoder 'bert-xxl'"),
        (["--all", "--encoder", "tests.no_such:thing"], 2, "There is no encoder 'tests.no_such:thing'"),
        (["nowhere.example"], 3, "Site 'nowhere.example' is not mapped"),
    ],
)
def test_invalid_arguments_are_refused_before_anything_starts(tmp_path, capsys, words, code, message):
    store = store_of(tmp_path)
    assert waygraph(["reencode", *words, "--store", store.location]) == code
    assert message in capsys.readouterr().err


def test_empty_store_and_missing_store_give_different_messages(tmp_path, capsys):
    Store.open(str(tmp_path / "empty"), create=True)
    assert waygraph(["reencode", "--all", "--store", str(tmp_path / "empty")]) == 3
    assert waygraph(["reencode", "--all", "--store", str(tmp_path / "none")]) == 7


def test_text_encoder_gets_the_context_of_the_whole_site(reencode, tmp_path):
    store = store_of(tmp_path)
    report = reencode(store, SITES[0], "--encoder", "text")
    assert report["sites"][0]["publication"]["encoded"] == STATES
    version = store.read(SITES[0])
    assert version.manifest.encoder.name == "text"
    assert version.manifest.encoder.context
    assert version.pages.keys() == version.graph.nodes.keys()


def test_descriptions_stay_with_a_map_and_are_encoded_with_it(reencode, tmp_path):
    store = Store.open(str(tmp_path / "maps"), create=True)
    publish(store, SITES[0], colours(8))
    version = store.read(SITES[0])
    node_id, seen = next(iter(version.observations.items()))
    written = Description("One sees a colour.", ("which hue", "what tint", "which shade"), "m", description_key(seen))
    store.publish(described_draft(version, {node_id: written}, {}, {}))
    assert reencode(store, SITES[0], "--encoder", "text")["sites"][0]["status"] == "published"
    after = store.read(SITES[0])
    assert after.descriptions == {node_id: written}
    with_texts = {name for name, page in after.pages.items() if set(written.texts) & set(page.rows)}
    assert with_texts == {node_id}
    assert after.pages[node_id].rows[-4:] == written.texts
    assert reencode(store, SITES[0], "--encoder", "text")["sites"][0]["status"] == "unchanged"


def test_tools_get_vectors_of_the_new_encoder_also_where_only_they_lack_them(reencode, tmp_path):
    store = Store.open(str(tmp_path / "maps"), create=True)
    version = with_tools(store, SITES[0], colours(8), "paint")
    (tool,) = version.tools.values()
    for encoder in (PATCH, "text"):
        assert reencode(store, SITES[0], "--encoder", encoder)["sites"][0]["status"] == "published"
        after = store.read(SITES[0])
        assert after.tool_pages[tool.id].vectors.shape[1] == after.manifest.encoder.dim
        assert after.pages.keys() == version.graph.nodes.keys()
    store.publish(replace(described_draft(after, {}, after.pages, {}), tool_pages={}))
    again = reencode(store, SITES[0], "--encoder", "text")["sites"][0]
    assert (again["status"], again["publication"]["encoded"]) == ("published", 0)
    assert np.array_equal(store.read(SITES[0]).tool_pages[tool.id].vectors, after.tool_pages[tool.id].vectors)
    assert reencode(store, SITES[0], "--encoder", "text")["sites"][0]["status"] == "unchanged"


def test_only_what_lacks_vectors_is_encoded_again(reencode, tmp_path):
    store = Store.open(str(tmp_path / "maps"), create=True)
    version = with_tools(store, SITES[0], colours(8), "paint", "fill", "cut")
    via = next(iter(version.graph.nodes))
    urls = [f"http://{SITES[0]}/{name}" for name in ("help", "about")]
    leads = {lead_id(url): Lead(lead_id(url), url, (url,), "", "", via, Action("click", target=url), 1) for url in urls}
    store.publish(replace(described_draft(version, {}, {}, {}), leads=leads))
    reencode(store, SITES[0], "--encoder", PATCH)
    whole = store.read(SITES[0])
    assert (len(whole.lead_pages), len(whole.tool_pages)) == (2, 3)
    lost, *kept = whole.tool_pages
    draft = described_draft(whole, {}, whole.pages, whole.lead_pages)
    store.publish(replace(draft, tool_pages={name: whole.tool_pages[name] for name in kept}))
    assert reencode(store, SITES[0], "--encoder", PATCH)["encoding"]["states"] == 1
    assert np.array_equal(store.read(SITES[0]).tool_pages[lost].vectors, whole.tool_pages[lost].vectors)


def test_jina_v4_encodes_stored_maps(reencode, tmp_path):
    store = Store.open(str(tmp_path / "maps"), create=True)
    publish(store, SITES[0], colours(8))
    weights = make_checkpoint(tmp_path / "weights")
    options = ("--encoder", "jina-v4", "--weights", str(weights))
    made = reencode(store, SITES[0], *options)["sites"][0]["publication"]
    assert (made["encoded"], made["without_vectors"]) == (8, 0)
    version = store.read(SITES[0])
    assert version.manifest.encoder.name == "jina-v4"
    assert version.manifest.encoder.context["recipe"]["revision"]
    page = next(iter(version.pages.values()))
    assert any(row.startswith("screenshot 0,0 ") for row in page.rows)
    assert reencode(store, SITES[0], *options)["sites"][0]["status"] == "unchanged"
