"""Reports of sites and of changes: what their files contain."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from tests import screenshot_map
from waygraph.core.errors import NotFound
from waygraph.index.graph.diff import MapDiff, StateChange
from waygraph.index.store import MapDraft, Store
from waygraph.index.store.element_outcomes import write_element_outcomes
from waygraph.serve.views.changes_report import changes_report
from waygraph.serve.views.site_report import MAX_FAILED, MAX_IMAGES, MAX_OUTCOMES, site_report

SITE = "site.example"


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store.open(str(tmp_path / "maps"), create=True)


def jpeg(number: int) -> bytes:
    written = io.BytesIO()
    Image.new("RGB", (64, 40), (number * 16 % 256, number // 16 * 16, 80)).save(written, "JPEG", quality=95)
    return written.getvalue()


def publish(store: Store, states: int, report: dict[str, Any] | None = None) -> list[str]:
    """Publish a map with screenshots and a report; return the ids of its states."""
    screenshot_map.publish(store, SITE, screenshot_map.colours(states))
    published = store.read(SITE)
    seen = {
        node_id: replace(each, screenshot=store.blobs.put(jpeg(number)))
        for number, (node_id, each) in enumerate(published.observations.items())
    }
    draft = MapDraft(
        site=SITE,
        start_url=published.manifest.start_url,
        graph=published.graph,
        observations=seen,
        pages={},
        encoder=published.manifest.encoder,
        report=report or {},
    )
    store.publish(draft)
    return list(published.graph.nodes)


def row(state: str, status: str, reason: str = "", element: str = "click link") -> dict[str, str]:
    return {"state": state, "status": status, "reason": reason, "element": element}


def test_a_report_counts_outcomes_and_lists_examples_of_each_reason(store: Store) -> None:
    first, second, *_ = publish(store, 3)
    rows = [
        *(row(first, "done") for _ in range(70)),
        *(row(first, "skipped", "external") for _ in range(400)),
        row(second, "skipped", "hazard", "click button Delete"),
        *(row(second, "failed", "gone") for _ in range(MAX_FAILED + 5)),
    ]
    depths = [{"depth": 0, "states": 1, "activations": 4, "seconds": 2.0}]
    publish(
        store, 3, {"fates": store.blobs.put(write_element_outcomes(rows)), "depths": depths, "advice": ["Allow it"]}
    )
    content = site_report(store, SITE).content
    assert content["elements"] == {"done": 70, "skipped": 401, "failed": MAX_FAILED + 5, "pending": 0}
    assert [(each["reason"], each["count"]) for each in content["skipped"]] == [("external", 400), ("hazard", 1)]
    assert content["skipped"][1]["example"] == "click button Delete"
    listed = content["outcomes"]
    assert len(listed) <= MAX_OUTCOMES
    assert [each["status"] for each in listed[:MAX_FAILED]] == ["failed"] * MAX_FAILED
    assert {each["reason"] for each in listed} == {"gone", "external", "hazard"}
    assert content["outcomes_total"] == 401 + MAX_FAILED + 5
    ids = content["graph"]["states"]["id"]
    assert ids[listed[-1]["state"]] == second
    assert content["graph"]["states"]["skipped"][ids.index(first)] == 400
    assert (content["depths"], content["advice"]) == (depths, ["Allow it"])


def test_a_report_has_images_of_an_even_sample_of_states(store: Store) -> None:
    publish(store, MAX_IMAGES + 40)
    found = site_report(store, SITE)
    assert len(found.content["sheet"]) == MAX_IMAGES
    shown = {found.content["graph"]["states"]["screenshot"][state] for state in found.content["sheet"]}
    assert shown == set(found.images)
    assert all(image.startswith(b"\xff\xd8\xff") for image in found.images.values())


def test_a_report_of_a_version_without_outcomes_and_with_lost_images_is_made(store: Store) -> None:
    first, *_ = publish(store, 2, {"skips": [{"node_id": "unknown", "reason": "scope"}], "depths": 7})
    path = next(Path(store.location, "blobs").glob(f"*/{store.observations(SITE)[first].screenshot}"))
    path.unlink()
    found = site_report(store, SITE)
    assert (found.content["elements"], found.content["depths"]) == (None, [])
    assert found.content["outcomes"][0]["state"] == -1
    assert len(found.images) == 1
    assert found.html()


def test_a_site_that_is_not_mapped_is_not_found(store: Store) -> None:
    with pytest.raises(NotFound):
        site_report(store, "nowhere.example")


def test_screenshots_of_changes_are_kept_once_and_up_to_a_size(store: Store) -> None:
    first, second, third = publish(store, 3)
    publish(store, 3)
    old, new = store.read(SITE, 2), store.read(SITE)
    diff = MapDiff((StateChange("changed", first, second), StateChange("changed", second, third)), ())
    found = changes_report(store, diff, old, new)
    one, two = found.content["changes"]["states"]
    assert one["screenshot_after"] == two["screenshot_before"]
    assert len(found.images) == 3
    assert found.content["left_out"] == 0
    size = len(store.blobs.get(old.observations[first].screenshot))
    limited = changes_report(store, diff, old, new, images_bytes=size)
    assert len(limited.images) == 1
    assert limited.content["changes"]["states"][1]["screenshot_after"] is None
    assert limited.content["left_out"] == 2
