"""A map whose states are encoded by their screenshots: published, searched, and closed to other encoders."""

import subprocess
import sys

import numpy as np
import pytest

from tests.page_service import screenshot_of
from tests.page_store import TEA
from tests.tiny_jina import make_checkpoint, one_thread  # noqa: F401
from waygraph.core.errors import EncoderMismatch
from waygraph.core.schemas import Filter, SearchRequest
from waygraph.core.settings import Settings
from waygraph.index.store import Store
from waygraph.pipeline.encode.registry import create_encoder
from waygraph.pipeline.encode.vision.patch_labels import patch_box
from waygraph.pipeline.jobs.publishing.draft import encode_draft
from waygraph.sdk.local import StoreMap
from waygraph.serve.query.maps import Maps
from waygraph.serve.query.query_encoder import EncodedQuery

pytestmark = pytest.mark.extended


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


def test_query_finds_the_matching_part_of_the_screenshot(published, settings):
    with StoreMap(settings.store, settings) as maps:
        (hit, *_) = maps.search(published.manifest.site, "where are my orders", 3, Filter(visited_only=True)).hits
        assert hit.matched.text.startswith("screenshot")


def test_a_hit_has_the_boxes_of_the_parts_of_its_screenshot_that_earned_the_score(settings, tmp_path):
    own = settings.model_copy(update={"store": str(tmp_path / "maps")})
    store = Store.open(own.store, create=True)
    store.publish(TEA.draft(create_encoder(own.encode, store.blobs), store.blobs, screenshot=screenshot_of("Tea")))
    small = store.read(TEA.site)
    node_id, page = TEA.id("home"), small.pages[TEA.id("home")]
    at = [row for row, label in enumerate(page.rows) if patch_box(label) is not None]
    wanted = [at[3], at[3], at[-2]]  # the first is asked for twice, so it earns twice as much
    encoded = EncodedQuery(np.asarray(page.vectors[wanted], np.float32), small.manifest.encoder.fingerprint)
    with Maps(own) as maps:
        maps.open()
        found = maps.search(TEA.site, SearchRequest(query="parts", k=9), encoded).hits
    hit = next(each for each in found if each.node_id == node_id)
    patches = hit.matched.patches
    assert [(each.box.x, each.box.y, each.box.width, each.box.height) for each in patches] == [
        (box.x, box.y, box.width, box.height) for box in (patch_box(page.rows[row]) for row in (at[3], at[-2]))
    ]
    assert [each.earned for each in patches] == pytest.approx([2 / 3, 1 / 3], abs=0.01)
    assert sum(each.earned for each in patches) == pytest.approx(hit.score, abs=0.01)


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
