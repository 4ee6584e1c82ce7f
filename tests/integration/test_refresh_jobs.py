"""The commands `refresh`, `diff` and `rollback`: versions, vectors and differences."""

import json

import pytest

from tests.browsers import LOOPBACK_ONLY
from tests.sites.mutable import MutableSite, Mutation
from waygraph.agents.describe.plan import Per, plan_descriptions
from waygraph.agents.describe.run import publish
from waygraph.cli.entry import run
from waygraph.core.run_progress import PROGRESS_NAME, RunProgress
from waygraph.core.settings import Settings
from waygraph.index.graph import Description
from waygraph.index.store import Store
from waygraph.pipeline.encode.registry import create_encoder
from waygraph.pipeline.encode.text.descriptions import description_key
from waygraph.pipeline.explore.checkpoint.journal_file import FileLease
from waygraph.pipeline.jobs import run_index, run_refresh
from waygraph.pipeline.jobs.work_files import journal_path

pytestmark = pytest.mark.extended


def command(capsys, *words):
    capsys.readouterr()
    code = run([*words, "--json"])
    return code, json.loads(capsys.readouterr().out)


@pytest.mark.timeout(240)
def test_a_site_is_refreshed_compared_and_rolled_back(tmp_path, capsys):
    settings = Settings(store=str(tmp_path / "maps"), browser=LOOPBACK_ONLY, explore={"depth": 2, "workers": 2})
    nothing = lambda _: None  # noqa: E731
    with MutableSite() as site:
        url = site.url
        run = run_index([url], settings=settings, on_event=nothing)
        (first,) = run.sites
        store, key = Store.open(settings.store), first.site
        progress = RunProgress.model_validate_json(store.read_run(run.run_id, PROGRESS_NAME))
        assert (progress.ended, progress.sites, progress.done, progress.active) == (True, 1, {"published": 1}, [])
        # The depth is the map's, whatever the settings of the refresh say.
        other = settings.model_copy(update={"explore": settings.explore.model_copy(update={"depth": 0})})
        (unchanged,) = run_refresh([key], settings=other, on_event=nothing).sites
        site.mutate(Mutation("edit", "/news/today"), Mutation("remove", "/team/ann"))
        full = settings.model_copy(update={"refresh": settings.refresh.model_copy(update={"full": True})})
        (changed,) = run_refresh([key], settings=full, on_event=nothing).sites
        # Two jobs on one site: the second one refuses, and says who is at it.
        path = journal_path(settings.store, key)
        lease = FileLease.take(path.with_name(f"{path.name}.lock"))
        (refused,) = run_refresh([key], settings=settings, on_event=nothing).sites
        lease.release()

    assert [each.status for each in (first, unchanged, changed, refused)] == [*["published"] * 3, "failed"], refused
    assert "in progress already" in refused.error.message
    assert (unchanged.publication.encoded, unchanged.publication.reused) == (0, first.publication.states)
    one, two, three = (store.read(key, number) for number in (1, 2, 3))
    assert two.graph.nodes.keys() == one.graph.nodes.keys()
    assert one.manifest.files["vectors.parquet"] == two.manifest.files["vectors.parquet"]
    assert two.manifest.settings["explore"]["depth"] == 2
    assert unchanged.publication.refresh["states"] == two.manifest.report["refresh"]["states"]
    assert two.manifest.report["refresh"]["states"] == {"match": len(one.graph)}
    assert 0 < changed.publication.encoded < len(three.graph) / 2
    assert "" in three.lineage.values()

    code, found = command(capsys, "diff", key, "--store", settings.store, "--html", str(tmp_path / "diff.html"))
    assert (code, found["from"], found["to"]) == (0, 2, 3)
    urls = {state["url"].removeprefix(url): state["verdict"] for state in found["states"]}
    assert urls["news/today"] == "changed"
    assert urls["team/ann"] == "gone"
    page = (tmp_path / "diff.html").read_text()
    assert "This paragraph was written lately." in page
    assert "data:image/jpeg;base64," in page

    code, rolled = command(capsys, "rollback", key, "1", "--store", settings.store)
    assert (code, rolled["version"]) == (0, 4)
    four = store.read(key)
    assert four.manifest.files["vectors.parquet"] == one.manifest.files["vectors.parquet"]
    assert four.graph.nodes.keys() == one.graph.nodes.keys()
    assert four.manifest.report["explored"] == one.manifest.report["explored"]  # a rollback makes nothing younger
    code, told = command(capsys, "history", key, "--store", settings.store)
    assert [each["rollback_to"] for each in told["versions"]] == [None, None, None, 1]
    assert [each["refresh_of"] for each in told["versions"]] == [None, 1, 2, None]


@pytest.mark.extended  # two explorations
@pytest.mark.timeout(240)
def test_a_refresh_keeps_the_descriptions_of_pages_that_did_not_change(tmp_path):
    settings = Settings(store=str(tmp_path / "maps"), browser=LOOPBACK_ONLY, explore={"depth": 1, "workers": 2})
    nothing = lambda _: None  # noqa: E731
    with MutableSite() as site:
        start = site.url
        (first,) = run_index([start], settings=settings, on_event=nothing).sites
        store, key = Store.open(settings.store), first.site
        one = store.read(key)
        written = {
            node_id: Description(f"Sentence {number}.", ("why", "what", "where"), "m", description_key(seen))
            for number, (node_id, seen) in enumerate(one.observations.items())
        }
        encoder = create_encoder(settings.encode)
        assert publish(store, one, written, encoder) == 2
        site.mutate(Mutation("edit", "/guide"))
        full = settings.model_copy(update={"refresh": settings.refresh.model_copy(update={"full": True})})
        (changed,) = run_refresh([key], settings=full, on_event=nothing).sites
    three = store.read(key)
    lost = {three.graph.nodes[node_id].url for node_id in three.graph.nodes.keys() - three.descriptions.keys()}
    assert [url.removeprefix(start) for url in lost] == ["guide"]
    assert changed.publication.encoded == 1
    for node_id, description in three.descriptions.items():
        assert description == written[node_id]
        assert three.pages[node_id].rows[-4:] == description.texts
    # What is described again costs one page.
    assert [subject.states for subject in plan_descriptions(three, Per.STATE, leads=0).subjects] == [
        tuple(three.graph.nodes.keys() - three.descriptions.keys())
    ]
