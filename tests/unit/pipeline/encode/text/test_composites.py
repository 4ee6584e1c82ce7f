"""Texts that a state is encoded as, and the segments that they come from."""

from dataclasses import replace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from waygraph.index.graph import Box, Observation, Segment
from waygraph.pipeline.encode.text.composites import ACTION_ROLES, MAX_PASSAGES, MAX_TEXTS, describe
from waygraph.pipeline.encode.text.own_text import MAX_NAME_CHARS
from waygraph.pipeline.encode.text.site_text import SiteText
from waygraph.pipeline.encode.text.url_words import url_words

BOX = Box(0, 0, 10, 10)
NO_SITE = SiteText()


def page(*segments: tuple[str, str], url: str = "http://x/admin/orders", title: str = "Orders") -> Observation:
    return Observation("n", url, title, tuple(Segment(text, role, BOX) for role, text in segments))


def row_texts(observation: Observation, site: SiteText = NO_SITE) -> list[str]:
    return [row.text for row in describe(observation, site).rows]


ORDERS = page(
    ("link", "Home"),
    ("heading", "Orders"),
    ("heading", "Open orders"),
    ("textbox", "Customer"),
    ("combobox", "Status"),
    ("button", "Filter"),
    ("columnheader", "Number"),
    ("columnheader", "Total"),
    ("cell", "$13.50"),
    ("text", "Orders wait here until they are packed."),
    ("link", "Export"),
)


ORDERS_TEXT = (
    "Orders. Open orders. Customer. Status. Filter. Number. Total. Orders wait here until they are packed. Export"
)


def test_a_state_becomes_title_summary_form_table_and_actions():
    assert row_texts(ORDERS, SiteText(boilerplate=frozenset({"Home"}))) == [
        "Orders. admin orders",
        "Orders. Open orders. Filter",
        "Orders: form with fields Customer, Status",
        "Orders: table with columns Number, Total",
        "Orders: actions Filter, Export",
        f"Orders. {ORDERS_TEXT}",
    ]


def test_every_row_names_its_source_segments():
    rows = describe(ORDERS, SiteText(boilerplate=frozenset({"Home"}))).rows
    assert [row.segments for row in rows] == [(1,), (2, 5), (3, 4), (6, 7), (5, 10), (1, 2, 3, 4, 5, 6, 7, 9, 10)]


def test_the_context_holds_title_url_headings_and_texts_but_neither_boilerplate_nor_bare_numbers():
    context = describe(ORDERS, SiteText(boilerplate=frozenset({"Home"}))).context
    assert context == f"Orders. admin orders. {ORDERS_TEXT}"


def test_a_state_that_shows_only_boilerplate_is_described_by_it():
    observation = page(("link", "Home"), ("link", "Cart"))
    assert row_texts(observation, SiteText(boilerplate=frozenset({"Home", "Cart"})))[-2] == "Orders: actions Home, Cart"


def test_texts_unique_to_a_state_at_its_url_get_a_row_and_come_first_in_the_context():
    url = "http://x/admin/orders"
    many = [("text", f"Paragraph {'abcdefghijklmnopqrstuvwxyz'[i % 26]}{i}") for i in range(2 * MAX_TEXTS)]
    observation = page(*many, ("heading", "Delete this order?"), ("button", "Keep it"), url=url)
    site = SiteText(shared={url: frozenset(text for _, text in many)})
    described = describe(observation, site)
    assert "Orders: shows Delete this order?, Keep it" in [row.text for row in described.rows]
    assert described.context.startswith("Orders. admin orders. Delete this order?. Keep it. Paragraph a0")


def test_only_state_of_a_url_has_no_row_of_differences():
    assert not any(": shows" in text for text in row_texts(ORDERS))


def test_state_whose_title_is_boilerplate_is_named_by_its_heading():
    site = SiteText(titles=frozenset({"Acme"}))
    assert row_texts(page(("heading", "Returns"), title="Acme", url="http://x/r/7"), site)[0] == "Returns. r"


def test_at_most_four_rows_of_twelve_actions():
    rows = row_texts(page(*(("link", f"Link {i}") for i in range(100))))
    actions = [row for row in rows if ": actions" in row]
    assert [row.count("Link") for row in actions] == [12, 12, 12, 12]


def test_action_repeated_in_every_row_of_a_table_is_listed_once():
    assert row_texts(page(*[("button", "Edit")] * 30))[-2] == "Orders: actions Edit"


def test_long_names_are_cut():
    row = row_texts(page(("link", "word " * 100)))[-2]
    assert len(row) <= len("Orders: actions ") + MAX_NAME_CHARS


def test_an_empty_page_still_has_a_row():
    described = describe(page(url="http://x/", title=""), NO_SITE)
    assert (described.context, [row.text for row in described.rows]) == ("home page", ["home page"])


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("http://x/", "home page"),
        ("http://x/account/order-history.html", "account order history"),
        ("http://x/orders/1042/edit?tab=shipping_address&page=2", "orders edit tab shipping address page"),
        ("http://x/item/3f2a9c0b7d1e4f56", "item"),
        ("http://x/3f2a9c0b-1111-4222-8333-444455556666", "home page"),
        ("http://x/#/settings/notifications", "settings notifications"),
        ("http://x/caf%C3%A9", "caf\u00e9"),
        ("http://x/productEditor", "product Editor"),
    ],
)
def test_url_words_are_the_words_of_path_query_and_route(url: str, words: str):
    assert url_words(url) == words


roles = st.sampled_from(sorted({*ACTION_ROLES, "heading", "textbox", "columnheader", "text", "cell"}))
segments = st.lists(st.tuples(roles, st.text(st.characters(codec="utf-8"), max_size=200)), max_size=80)


@example([("button", "0.")], "", set())
@given(segments, st.text(max_size=40), st.sets(st.integers(0, 80)))
def test_any_state_has_non_empty_rows_that_contain_their_segments(seg, title, boiler):
    observation = page(*seg, title=title)
    boilerplate = frozenset(" ".join(seg[i][1].split()) for i in boiler if i < len(seg))
    described = describe(observation, SiteText(boilerplate=boilerplate))
    assert described.context
    assert 1 <= len(described.rows) <= 9 + MAX_PASSAGES
    for row in described.rows:
        assert row.text.strip()
        assert len(set(row.segments)) == len(row.segments)
        for index in row.segments:
            said = " ".join(observation.segments[index].text.split())
            # Names and sentences are put together with a full stop between them, so none is kept of their own.
            assert said[: MAX_NAME_CHARS - 1].rstrip().removesuffix(".") in row.text


def test_long_states_also_have_a_row_per_passage():
    words = [("text", f"w{'abcdefghij'[i // 10]}{'abcdefghij'[i % 10]}") for i in range(100)]
    rows = describe(page(*words), NO_SITE).rows
    passages = [row for row in rows if len(row.segments) > 1]
    assert [(row.segments[0], row.segments[-1]) for row in passages] == [(0, 39), (40, 79), (80, 99)]
    assert all(row.text.startswith("Orders. ") for row in passages)


def test_anchor_text_is_a_row_without_segments():
    described = describe(replace(ORDERS, anchor_texts=("To pack: what was paid", "Sales")), NO_SITE)
    assert (described.rows[-1].text, described.rows[-1].segments) == ("To pack: what was paid. Sales", ())
    assert described.names == described.rows[-1].text


def test_state_without_anchor_text_uses_its_own_name_without_an_extra_row():
    described = describe(ORDERS, NO_SITE)
    assert described.names == "Orders"
    assert described.rows == described.composites + described.passages
