"""A map whose states are encoded by their screenshots: published, searched, and closed to other encoders."""

import subprocess
import sys

import pytest

from tests.tiny_jina import make_checkpoint, one_thread  # noqa: F401
from waygraph.core.errors import EncoderMismatch
from waygraph.core.schemas import Filter
from waygraph.core.settings import Settings
from waygraph.index.store import Store
from waygraph.pipeline.encode.registry import create_encoder
from waygraph.pipeline.encode.vision.patch_labels import patch_box
from waygraph.pipeline.jobs.publishing.draft import encode_draft
from waygraph.sdk.local import StoreMap


@pytest.fixture(scope="module")
def settings(tmp_path_factory) -> Settings:
    folder = tmp_path_factory.mktemp("visual")
    weights = make_checkpoint(folder / "weights")
    return Settings(
        store=str(folder / "maps"), encode={"encoder": "jina-v4", "weights": weights, "device": "cpu", "threads": 1}
    )


@pytest.fixture(scope="module")
def published(shop, settings):
    store = Store.open(settings.store, create=True)
    for content in shop.blobs.values():
        store.blobs.put(content)
    encoder = create_encoder(settings.encode, store.blobs)
    store.publish(encode_draft(shop.capture, settings, encoder))
    return store.read(shop.capture.site)


def test_every_state_of_a_site_has_a_row_for_each_part_of_its_screenshot(published):
    assert published.pages.keys() == published.observations.keys()
    for page in published.pages.values():
        boxes = [box for row in page.rows if (box := patch_box(row))]
        assert len(boxes) == len(page.rows) - 11
        assert max(box.x + box.width for box in boxes) == 1280
        assert max(box.y + box.height for box in boxes) == 800


def test_manifest_records_how_the_vectors_were_made(published):
    recipe = published.manifest.encoder.context["recipe"]
    assert recipe["model"] == "jina-embeddings-v4"
    assert recipe["dtype"] == "float32"
    assert recipe["max_pixels"] > 0


def test_query_finds_the_matching_parts_of_the_screenshot(published, settings):
    """The weights are random, so a query may find nothing but the rows around the image, which are no part of it."""
    queries = ("where are my orders", "cards", "a warm wool throw", "returns and refunds", "sales report")
    with StoreMap(settings.store, settings) as maps:
        found = [maps.search(published.manifest.site, query, 3, Filter(visited_only=True)).hits for query in queries]
    hits = [hit for answer in found for hit in answer]
    assert all(hit.matched.text.startswith("screenshot") for hit in hits)
    assert any(hit.matched.patches for hit in hits)
    for hit in hits:
        boxes = [patch.box for patch in hit.matched.patches]
        assert all(0 <= box.x < box.x + box.width <= 1280 for box in boxes)
        assert all(0 <= box.y < box.y + box.height <= 800 for box in boxes)
        earned = [patch.earned for patch in hit.matched.patches]
        assert earned == sorted(earned, reverse=True)
        assert sum(earned) <= hit.score + 1e-3


def test_queries_of_another_encoder_or_pixel_budget_are_refused(published, settings):
    others = (
        Settings(),
        settings.model_copy(update={"encode": settings.encode.model_copy(update={"max_pixels": 9000})}),
    )
    for other in others:
        with (
            StoreMap(settings.store, other) as maps,
            pytest.raises(EncoderMismatch, match="was made by encoder 'jina-v4'"),
        ):
            maps.search(published.manifest.site, "where are my orders", 3)


def test_encoders_need_no_ray():
    program = (
        "import sys, waygraph.pipeline.encode.vision.jina_v4.parity, waygraph.pipeline.encode.vision.colmodernvbert,"
        " waygraph.pipeline.encode.parity,"
        " waygraph.pipeline.encode.vision.sentence_transformers_model;"
        "print('ray' in sys.modules, 'sentence_transformers' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "False False\n"
