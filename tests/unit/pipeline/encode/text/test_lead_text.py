"""What encoders read of a page that was not visited."""

import numpy as np
import pytest

from waygraph.index.graph import Action, Lead, lead_id
from waygraph.index.vectors.multivector import EncodedPage
from waygraph.pipeline.encode.protocol import content_key
from waygraph.pipeline.encode.text.composites import describe
from waygraph.pipeline.encode.text.lead_text import LEAD_WEIGHTS, lead_observation, weighted_page
from waygraph.pipeline.encode.text.site_text import SiteText
from waygraph.pipeline.encode.text_counts import count_segments

URL = "http://shop.example/admin/returns"


def lead(*names, heading="", description=""):
    return Lead(lead_id(URL), URL, names, heading, description, "home", Action("click", target=URL), 1)


def rows(observation):
    return [row.text for row in describe(observation, SiteText.from_counts(count_segments([]))).rows]


def test_all_that_is_known_of_a_page_is_read():
    known = lead("Returns", "Send back", heading="Orders", description="Labels and refunds")
    texts = " ".join(rows(lead_observation(known)))
    for part in ("Returns", "Send back", "Orders", "Labels and refunds", "admin"):
        assert part in texts


def test_a_page_without_names_is_read_by_its_url():
    assert rows(lead_observation(lead())) == ["admin returns"]


def test_content_does_not_depend_on_the_state_that_shows_the_link():
    one, other = lead_observation(lead("Returns")), lead_observation(lead("Refunds"))
    assert content_key(one, "text") == content_key(one, "screenshot") != content_key(other, "text")


@pytest.mark.parametrize("reads", ["text", "screenshot"])
def test_vectors_are_scaled_by_the_weight_of_the_encoder(reads):
    page = EncodedPage(np.ones((2, 3), np.float32), ("a", "b"), ((), ()))
    weighted = weighted_page(page, reads)
    assert weighted.vectors.dtype == np.float32
    assert np.allclose(weighted.vectors, LEAD_WEIGHTS[reads], atol=2**-9)
    assert weighted.rows == page.rows


def test_vectors_are_rounded_so_that_they_compress_and_scores_stay():
    rng = np.random.default_rng(1)
    rows, query = (each / np.linalg.norm(each, axis=1, keepdims=True) for each in rng.normal(size=(2, 50, 384)))
    page = EncodedPage(rows.astype(np.float32), ("a",) * 50, ((),) * 50)
    weighted = weighted_page(page, "text").vectors
    assert len(np.unique(np.abs(weighted))) < 200
    assert np.abs((weighted - LEAD_WEIGHTS["text"] * rows) @ query.T).max() < 0.01


def test_short_rows_are_not_rounded():
    page = EncodedPage(np.full((1, 3), 0.001, np.float32), ("a",), ((),))
    assert np.allclose(weighted_page(page, "text").vectors, LEAD_WEIGHTS["text"] * page.vectors)
