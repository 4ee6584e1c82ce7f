"""The commands on a store in a bucket, from indexing a site to a service: the same as on a folder."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.s3_server import BUCKET, s3_server
from tests.service_process import RunningService
from waygraph.core.errors import NotFound
from waygraph.core.schemas import WalkedStep
from waygraph.demo_site import DemoSite
from waygraph.index.store import Store
from waygraph.sdk.facade import Waygraph

pytestmark = [pytest.mark.timeout(300), pytest.mark.extended]
STORE = f"s3://{BUCKET}/team"


def waygraph(*words: str) -> tuple[int, Any, str]:
    """Run a command; return its exit code, its JSON and its messages."""
    done = subprocess.run(
        [sys.executable, "-m", "waygraph", *words, "--store", STORE, "--json"],
        capture_output=True,
        text=True,
        check=False,
        env={name: value for name, value in os.environ.items() if not name.startswith("RAY_")},
    )
    return done.returncode, json.loads(done.stdout), done.stderr


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The demo shop, mapped into a bucket by `waygraph index`."""
    with pytest.MonkeyPatch.context() as patch, s3_server(patch), DemoSite() as server:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        code, report, said = waygraph("index", server.url, "--depth", "1", "--max-states", "8")
        assert code == 0, said
        assert report["store"] == STORE
        yield report["sites"][0]["site"]


def test_map_in_a_bucket_is_listed_searched_and_walked(site: str) -> None:
    code, listed, said = waygraph("sites")
    assert (code, [each["site"] for each in listed["sites"]]) == (0, [site]), said
    code, found, said = waygraph("search", site, "where can I pay by card?")
    assert code == 0, said
    assert found["hits"]
    code, path, said = waygraph("path", site, found["hits"][0]["node_id"])
    assert (code, path["steps"][-1]["expected_node_id"]) == (0, found["hits"][0]["node_id"]), said


def test_report_of_the_run_is_in_the_bucket_and_no_upload_is_unfinished(site: str) -> None:
    store = Store.open(STORE)
    run = store.manifest(site).report["run_id"]
    assert json.loads(store.read_run(run, "report.json"))["run_id"] == run
    assert list(Path(os.environ["XDG_CACHE_HOME"]).rglob("*.sqlite")) == []


def test_service_answers_from_the_bucket_and_stores_feedback_there(site: str) -> None:
    service = RunningService(STORE)
    try:
        with Waygraph(service.url) as maps:
            found = maps.search(site, "shopping cart").hits
            hit = next(hit for hit in found if hit.visited)
            lead = next(hit for hit in found if not hit.visited)
            with pytest.raises(NotFound, match="was not visited"):
                maps.screenshot(site, lead.node_id)
            assert maps.screenshot(site, hit.node_id).startswith(b"\xff\xd8")
            step = maps.path(site, None, hit.node_id).steps[0]
            walked = WalkedStep(source=None, action=step.action, target=step.expected_node_id, outcome="ok")
            assert maps.source.feedback(site, [walked]).taken == 1
    finally:
        service.stop()
    assert [line["outcome"] for line in Store.open(STORE).feedback.read(site)] == ["ok"]


def test_missing_bucket_is_reported_before_a_run_starts(site: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "waygraph", "index", site, "--store", "s3://no-such-bucket/x"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 7
    assert "no bucket 'no-such-bucket'" in done.stderr
