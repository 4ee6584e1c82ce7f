"""What encoders read of a page that was not visited."""

import numpy as np

from waygraph.index.graph import Action, Box, Lead, Observation, Segment, lead_id
from waygraph.index.vectors.multivector import EncodedPage
from waygraph.pipeline.encode.protocol import content_key
from waygraph.pipeline.encode.text.composites import describe
from waygraph.pipeline.encode.text.lead_text import ENCODED_PER_STATE, encoded_leads, lead_observations, rounded_page
from waygraph.pipeline.encode.text.site_text import SiteText
from waygraph.pipeline.encode.text_counts import count_segments

URL = "http://shop.example/admin/returns/7/labels"


def lead(*names, heading="", description=""):
    return Lead(lead_id(URL), URL, names, heading, description, "home", Action("click", target=URL), 1)


def text_of(known, *visited):
    (observation,) = lead_observations([known], visited)
    return describe(observation, SiteText.from_counts(count_segments([])))


def labels_of(name):
    texts = (Segment("Print all", "button", Box(0, 0, 1, 1)), Segment("Format", "combobox", Box(0, 0, 1, 1)))
    return Observation(name, URL.replace("7", name), "Labels", texts)


def test_a_lead_has_one_row_of_its_names():
    known = text_of(lead("Returns", "Send back", heading="Orders", description="Labels and refunds"))
    assert [row.text for row in known.rows] == ["Returns. Send back"]


def test_all_that_is_known_of_a_page_is_its_context():
    known = lead("Returns", "Send back", heading="Orders", description="Labels and refunds")
    context = text_of(known, labels_of("8"), labels_of("9")).context
    for part in ("Returns", "Send back", "Orders", "Labels and refunds", "admin", "Print all, Format"):
        assert part in context


def test_a_page_without_names_is_read_by_its_url():
    assert [row.text for row in text_of(lead()).rows] == ["admin returns labels"]


def test_further_records_of_long_lists_and_refused_pages_get_no_vectors():
    def at(path, refusal=""):
        return Lead(lead_id(path), f"http://s{path}", (path,), "", "", "home", Action("click"), 1, refusal)

    records = [at(f"/users/{number}") for number in range(900)]
    found = encoded_leads([*records, at("/reports/locked"), at("/logout", "hazard")], states=100)
    assert len(found) == 100 * ENCODED_PER_STATE
    assert "/reports/locked" in {each.names[0] for each in found}
    assert "/logout" not in {each.names[0] for each in found}


def test_content_does_not_depend_on_the_state_that_shows_the_link():
    one, other = lead_observations([lead("Returns"), lead("Refunds")], [])
    assert content_key(one, "text") == content_key(one, "screenshot") != content_key(other, "text")


def test_a_lead_and_a_state_with_the_same_texts_have_other_contents():
    (known,) = lead_observations([lead("Returns")], [])
    state = Observation(known.node_id, known.url, known.title, known.segments, anchor_texts=known.anchor_texts)
    assert state.content_hash != known.content_hash


def test_vectors_are_rounded_so_that_they_compress_and_scores_stay():
    rng = np.random.default_rng(1)
    rows, query = (each / np.linalg.norm(each, axis=1, keepdims=True) for each in rng.normal(size=(2, 50, 384)))
    page = EncodedPage(rows.astype(np.float32), ("a",) * 50, ((),) * 50)
    rounded = rounded_page(page).vectors
    assert rounded.dtype == np.float32
    assert len(np.unique(np.abs(rounded))) < 30
    assert np.abs((rounded - rows) @ query.T).max() < 0.02


def test_short_rows_are_not_rounded():
    page = EncodedPage(np.full((1, 3), 0.001, np.float32), ("a",), ((),))
    assert rounded_page(page) is page
