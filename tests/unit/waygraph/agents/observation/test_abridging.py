"""What the text of a page leaves out, and how an agent gets to see it."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.waygraph.agents.observation.test_simplify import tree
from waygraph.agents.observation import ElementTable, PageObservation, UiNode, render, simplify
from waygraph.agents.observation.passes.abridging import MAX_TEXT, abridge, part_fingerprints
from waygraph.agents.observation.render import MAX_LINES

NAVIGATION = """
navigation Main
  link [1] Orders
  link [2] Customers of the shop {current: page}
  link [3] Catalogue and prices
  link [4] Newsletters
  link [5] Settings
  link [6] Team and permissions
  link [7] Reports
  link [8] Log out
"""
WORDS = ("ledger", "harbour", "copper", "meadow", "lantern", "orchard", "violin", "granite", "falcon", "ember")
WALL = " ".join(WORDS[i % len(WORDS)] for i in range(200))


def observation_of(root, **options):
    return PageObservation(None, ElementTable({}), root, form="abridged", **options)


def text_of(page, before=""):
    """Return the text of a page after another one."""
    known = part_fingerprints(simplify(tree(before))) if before else frozenset()
    return observation_of(tree(page), known_parts=known).text.expandtabs(2)


def test_an_unchanged_part_is_one_line_with_its_first_elements_and_the_current_one():
    page = NAVIGATION + "main\n  heading Orders"
    before = NAVIGATION.replace(" {current: page}", "") + "main\n  heading Customers"
    assert text_of(page, before) == (
        "RootWebArea 'T'\n"
        "  navigation [p1] 'Main' (unchanged) link [1] 'Orders'; link [2] 'Customers of the shop' [current: page]; "
        "link [3] 'Catalogue and prices'; link [4] 'Newsletters'; link [5] 'Settings'; … 3 more\n"
        "  main\n    heading 'Orders'"
    )


def test_a_page_without_one_before_it_is_shown_in_full():
    assert "[8] 'Log out'" in text_of(NAVIGATION)


@pytest.mark.parametrize(
    "changed",
    [
        NAVIGATION + "  link [9] Help",
        NAVIGATION.replace("Orders", "Orders (1)"),
        NAVIGATION + "  alert Saved",
        NAVIGATION.replace("Settings", "Settings {invalid: true}"),
        "main\n" + "".join(f"  {line}\n" for line in NAVIGATION.strip().splitlines()),
    ],
)
def test_what_changed_alerts_errors_and_main_content_are_not_folded(changed):
    before = NAVIGATION if "alert" not in changed and "invalid" not in changed and "main" not in changed else changed
    assert "unchanged" not in text_of(changed, before)


def test_a_part_with_the_focus_is_not_folded():
    root = simplify(tree(NAVIGATION))
    known = part_fingerprints(root)
    assert "unchanged" in render(abridge(root, known=known).tree)
    assert "unchanged" not in render(abridge(root, known=known, focused={"3"}).tree)


def test_a_long_text_is_cut_between_words_and_shown_on_demand():
    root = UiNode("RootWebArea", "T", children=[UiNode("text", WALL), UiNode("textbox", "Note", {"value": WALL}, "1")])
    page = observation_of(root)
    text, field = page.text.expandtabs(2).splitlines()[1:]
    assert re.fullmatch(r"  text \[p1\] '(\w+ )+…'", text)
    assert re.fullmatch(r"  textbox \[1\] 'Note' \[value: (\w+ )+…\]", field)
    assert WALL in page.with_part("p1").text
    assert page.with_part("1").with_part("p1").text.count(WALL) == 2
    assert page.with_part("p1").with_part("p1") is None


def test_what_is_left_out_is_shown_by_the_id_of_an_element_in_it():
    page = observation_of(tree(NAVIGATION), known_parts=part_fingerprints(simplify(tree(NAVIGATION))))
    assert "'Team and permissions'" not in page.text
    assert page.with_part("6").text == page.with_part("p1").text
    assert "link [6] 'Team and permissions'" in page.with_part("6").text
    assert page.with_part("9") is page.with_part("p2") is None


def test_lines_beyond_the_limit_are_shown_in_pages():
    root = UiNode("RootWebArea", "T", children=[UiNode("text", f"line {i}") for i in range(2 * MAX_LINES + 500)])
    page = observation_of(root)
    assert page.text.splitlines()[-1] == f"[p2] ({MAX_LINES + 501} more lines)"
    second = page.with_part("p2")
    assert second.text.splitlines()[0] == f"[p1] ({MAX_LINES} lines before these)"
    assert second.with_part("p3").text.splitlines()[-1] == f"\ttext 'line {2 * MAX_LINES + 499}'"
    assert second.with_part("p1").text == page.text


LANDMARKS = ["navigation", "banner", "list", "main", "generic"]


@st.composite
def pages(draw):
    """Return a tree with landmarks, long lists and long texts, whose ids are in document order."""
    count = iter(range(1, 1_000))

    def node(depth):
        kind = draw(st.sampled_from(["part", "link", "text", "list", "alert"] if depth < 3 else ["link", "text"]))
        if kind == "part":
            children = [node(depth + 1) for _ in range(draw(st.integers(0, 9)))]
            return UiNode(draw(st.sampled_from(LANDMARKS)), draw(st.sampled_from(["", "Main"])), children=children)
        if kind == "list":
            ref = str(next(count))
            size = draw(st.sampled_from([3, 30]))
            options = [UiNode("option", f"Option {i}", {}, str(next(count))) for i in range(size)]
            return UiNode("combobox", "List", {"value": "Option 1"}, ref, folded=options)
        name = draw(st.sampled_from(["Orders", "All the customers of the shop", "x" * (MAX_TEXT + 9), WALL]))
        if kind == "link":
            return UiNode("link", name, {}, str(next(count)))
        return UiNode(kind, name)

    return UiNode("RootWebArea", "T", children=[node(0) for _ in range(draw(st.integers(0, 8)))])


@given(pages(), st.booleans())
def test_every_element_is_shown_or_behind_an_id_that_shows_it(root, has_page_before):
    page = observation_of(root, known_parts=part_fingerprints(simplify(root)) if has_page_before else frozenset())
    for ref in root.refs():
        shown = page if f"[{ref}]" in page.text else page.with_part(ref)
        assert shown is not None, ref
        assert f"[{ref}]" in shown.text
        assert [part for part in re.findall(r"\[(p\d+)\]", shown.text) if part not in page.text] == []


@given(pages(), st.booleans())
def test_when_everything_was_asked_for_the_text_is_the_full_one(root, has_page_before):
    page = observation_of(root, known_parts=part_fingerprints(simplify(root)) if has_page_before else frozenset())
    for _ in range(500):
        left = next(iter(page._abridged.hidden), None)
        if left is None:
            break
        page = page.with_part(left)
    assert page.text == page.full_text == render(simplify(root))
