"""Detection of a site's boilerplate, and removal of the site's name from titles."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from waygraph.index.graph import Box, Observation, Segment
from waygraph.pipeline.encode.text.site_text import SiteText, title_parts
from waygraph.pipeline.encode.text_counts import count_segments

BOX = Box(0, 0, 10, 10)


def state(node: str, *texts: str, url: str = "", title: str = "") -> Observation:
    return Observation(node, url or f"http://x/{node}", title, tuple(Segment(text, "text", BOX) for text in texts))


def test_text_counts_once_per_state_regardless_of_whitespace():
    counts = count_segments([state("a", "Home", "Home", " Home \n"), state("b", "Home"), state("c", "Cart")])
    assert counts.states == 3
    assert counts.texts == {"Home": 2, "Cart": 1}


def test_empty_texts_are_not_counted():
    assert count_segments([state("a", "", " \n")]).texts == {}


def test_shared_texts_of_a_url_are_those_most_of_its_states_show():
    counts = count_segments(
        [
            state("plain", "Products", "Add", url="http://x/p", title="P"),
            state("dialog", "Products", "Add", "Delete for ever?", url="http://x/p"),
            state("menu", "Products", "Add", "Duplicate", url="http://x/p"),
            state("other", "Help"),
        ]
    )
    assert counts.shared == {"http://x/p": frozenset({"Products", "Add"})}


def test_texts_on_more_than_thirty_percent_of_the_states_are_boilerplate():
    states = [
        state(str(i), "everywhere", *(["often"] if i < 7 else []), *(["at 30%"] if i < 6 else [])) for i in range(20)
    ]
    assert SiteText.from_counts(count_segments(states)).boilerplate == {"everywhere", "often"}


@pytest.mark.parametrize("states", [1, 2, 3])
def test_sites_of_up_to_three_states_have_no_boilerplate_and_keep_their_titles(states: int):
    counts = count_segments([state(str(i), "menu", title="Page | Acme") for i in range(states)])
    site = SiteText.from_counts(counts)
    assert (site.boilerplate, site.titles) == (frozenset(), frozenset())


def test_a_text_of_two_pages_is_not_boilerplate_of_a_site_of_four():
    counts = count_segments([state(str(i), "menu", *(["Reviews"] if i < 2 else [])) for i in range(4)])
    assert SiteText.from_counts(counts).boilerplate == {"menu"}


def test_title_parts_that_most_states_carry_are_dropped():
    counts = count_segments(
        [state(str(i), title=f"Order {i} \u2013 Orders | Acme") for i in range(4)] + [state("h", title="Acme")]
    )
    site = SiteText.from_counts(counts)
    assert site.own_title("Order 3 \u2013 Orders | Acme") == "Order 3"
    assert site.own_title("Acme") == ""


@pytest.mark.parametrize(
    ("title", "parts"),
    [
        ("Acme", ["Acme"]),
        ("T-shirts and e-mail", ["T-shirts and e-mail"]),
        ("Orders - Admin - Acme", ["Orders", "Admin", "Acme"]),
        ("Orders|Acme", ["Orders", "Acme"]),
        ("Acme: Orders", ["Acme", "Orders"]),
        ("Opening hours 9:00-17:00", ["Opening hours 9:00-17:00"]),
        (" | ", []),
        ("", []),
    ],
)
def test_titles_are_split_at_separators_and_nowhere_else(title: str, parts: list[str]):
    assert title_parts(title) == parts


texts = st.text(st.characters(codec="utf-8"), max_size=12)
states = st.lists(
    st.builds(
        lambda node, url, title, segments: state(node, *segments, url=url, title=title),
        texts,
        st.sampled_from(["http://x/a", "http://x/b", "http://x/c"]),
        texts,
        st.lists(st.sampled_from(["a", "b", " b ", "c d", "e"]), max_size=5),
    ),
    max_size=12,
)


@given(states)
def test_the_site_context_survives_json(observations: list[Observation]):
    site = SiteText.from_counts(count_segments(observations))
    assert SiteText.from_json(json.loads(json.dumps(site.to_json()))) == site


@given(states, st.randoms())
def test_the_site_context_does_not_depend_on_the_order_of_states(observations: list[Observation], random):
    shuffled = list(observations)
    random.shuffle(shuffled)
    contexts = [SiteText.from_counts(count_segments(each)).to_json() for each in (observations, shuffled)]
    assert json.dumps(contexts[0]) == json.dumps(contexts[1])
