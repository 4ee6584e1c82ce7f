"""A map whose states are encoded by their screenshots: published, searched, and closed to other encoders."""

import subprocess
import sys

import pytest

from index.store import Store
from pipeline.encode.pages import patch_box
from pipeline.encode.registry import create_encoder
from pipeline.jobs.publishing.draft import encoded_draft
from tests.tiny_jina import make_checkpoint, one_thread  # noqa: F401
from waygraph.errors import EncoderMismatch
from waygraph.local import StoreMap
from waygraph.settings import Settings


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
    store.publish(encoded_draft(shop.capture, settings, encoder))
    return store.read(shop.capture.site)


def test_every_state_of_a_site_has_a_row_for_each_part_of_its_screenshot(published):
    assert published.pages.keys() == published.observations.keys()
    for page in published.pages.values():
        boxes = [box for row in page.rows if (box := patch_box(row))]
        assert len(boxes) == len(page.rows) - 11
        assert max(box.x + box.width for box in boxes) == 1280
        assert max(box.y + box.height for box in boxes) == 800


def test_the_manifest_says_how_the_vectors_were_made(published):
    recipe = published.manifest.encoder.context["recipe"]
    assert recipe["model"] == "jina-embeddings-v4"
    assert recipe["dtype"] == "float32"
    assert recipe["max_pixels"] > 0


def test_a_question_finds_the_part_of_the_screenshot_that_answers_it(published, settings):
    with StoreMap(settings.store, settings) as maps:
        (hit, *_) = maps.search(published.manifest.site, "where are my orders", 3).hits
        assert hit.matched.text.startswith("screenshot")


def test_questions_of_another_encoder_or_another_budget_are_refused(published, settings):
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
        "import sys, pipeline.encode.jina_v4.parity, pipeline.encode.colmodernvbert, pipeline.encode.parity,"
        " pipeline.encode.sentence_transformers_model;"
        "print('ray' in sys.modules, 'sentence_transformers' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "False False\n"
