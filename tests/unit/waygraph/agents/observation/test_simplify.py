"""The passes from the accessibility tree to the text that an agent reads."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from waygraph.agents.observation import UiNode, build_tree, render, simplify
from waygraph.agents.observation.simplify import PASSES
from waygraph.pipeline.browser.page.snapshot import OutlineNode


def tree(text):
    """Read a tree from lines such as `  link [3] Cart {required: true}`; two spaces are one level."""
    rows, refs = [], []
    for line in text.strip("\n").splitlines():
        depth = (len(line) - len(line.lstrip())) // 2
        body, _, states = line.strip().partition(" {")
        role, _, name = body.partition(" ")
        ref = ""
        if name.startswith("["):
            ref, _, name = name[1:].partition("]")
        refs.append(ref)
        pairs = tuple(tuple(pair.split(": ")) for pair in states.rstrip("}").split(", ") if pair)
        rows.append(OutlineNode(depth, role, name.strip(), pairs))
    return build_tree(rows, refs, title="T")


def simplified(text):
    first, *lines = render(simplify(tree(text))).expandtabs(2).splitlines()
    assert first == "RootWebArea 'T'"
    return "\n".join(line.removeprefix("  ") for line in lines)


def test_text_that_a_name_repeats_is_left_out():
    assert (
        simplified("""
link [1] Cart
  StaticText Cart
LabelText
  StaticText Email
textbox [2] Email
StaticText 2 items
""")
        == "link [1] 'Cart'\ntextbox [2] 'Email'\ntext '2 items'"
    )


def test_text_stays_if_only_a_part_of_a_word_is_the_same():
    assert simplified("link [1] Page 12\nStaticText 1") == "link [1] 'Page 12'\ntext '1'"


def test_the_only_text_of_a_node_without_a_name_becomes_its_name():
    assert simplified("paragraph\n  StaticText Hello") == "paragraph 'Hello'"


def test_states_that_rarely_decide_are_left_out():
    page = "textbox [1] Name {focused: true, required: true, value: Ann}\nbutton [2] A {pressed: false}"
    assert simplified(page) == "textbox [1] 'Name' [required: true, value: Ann]\nbutton [2] 'A'"


def test_images_without_a_name_of_their_own_are_left_out():
    assert (
        simplified("""
link [1] Logo
  img Logo
img
img Sold out
StaticText Lamp
""")
        == "link [1] 'Logo'\nimg 'Sold out'\ntext 'Lamp'"
    )


def test_repeated_leaves_are_written_once_but_not_those_with_ids():
    assert (
        simplified("StaticText a\nStaticText a\nbutton [1] x\nbutton [2] x")
        == "text 'a'\nbutton [1] 'x'\nbutton [2] 'x'"
    )


def test_a_name_says_once_what_a_picture_in_it_repeats():
    page = """
button [1] Python 3 Python 3
  img Python 3
  paragraph
    StaticText Python 3
link [2] Walla Walla
  StaticText Walla Walla
"""
    assert simplified(page) == "button [1] 'Python 3'\nlink [2] 'Walla Walla'"


def test_parts_are_not_named_by_what_their_tab_or_heading_says():
    page = """
tablist
  tab [1] Editor {selected: true}
tabpanel Editor
  textbox [2] Text
  button [3] Save
heading [4] Installed
region Installed
  StaticText one
  StaticText two
region Discover
  StaticText three
  StaticText four
"""
    assert (
        simplified(page)
        == """tablist [1] Editor [selected: true]
tabpanel
  textbox [2] 'Text'
  button [3] 'Save'
heading [4] 'Installed'
region
  text 'one'
  text 'two'
region 'Discover'
  text 'three'
  text 'four'"""
    )


def test_boxes_for_controls_without_any_are_left_out():
    assert "3 selected" in simplified("toolbar\n  StaticText 3 selected")
    assert simplified("list\n  listitem\n    tab [1] General") != simplified("list\n  listitem\n    button [1] General")
    assert simplified("toolbar Tools\ntoolbar [1] Tools\ntoolbar Tools\n  button [2] Cut") == (
        "toolbar [1] 'Tools'\ntoolbar 'Tools'\n  button [2] 'Cut'"
    )


def test_items_of_a_menu_and_tabs_are_folded_with_their_ids():
    assert (
        simplified("""
menu File
  menuitem [1] Open
  listitem
  menuitem [2] Save {disabled: true}
tablist
  tab [5] Editor {selected: true}
    StaticText Editor
  tab [6] Output
combobox [3] Size {value: M}
  option S
  option M {selected: true}
""")
        == "menu 'File' [1] Open; [2] Save [disabled: true]\n"
        "tablist [5] Editor [selected: true]; [6] Output\ncombobox [3] 'Size' [value: M] S; M"
    )


def test_terms_and_details_are_one_line():
    assert (
        simplified("""
DescriptionList
  DescriptionListTerm
    StaticText Colour
  DescriptionListDetail
    StaticText red
  DescriptionListDetail
    StaticText blue
  DescriptionListTerm
    StaticText Maker
  DescriptionListDetail
    link [1] Ember
""")
        == """DescriptionList
  text 'Colour: red; blue'
  DescriptionListTerm 'Maker'
  DescriptionListDetail
    link [1] 'Ember'"""
    )


def test_a_heading_and_its_link_collapse_into_the_link():
    assert (
        simplified("""
heading Lamps {level: 2}
  link [1] Lamps
    StaticText Lamps
link [2] Vases
  heading Vases {level: 3}
""")
        == "link [1] 'Lamps'\nlink [2] 'Vases'"
    )


def test_data_tables_become_markdown_and_keep_the_ids_in_their_cells():
    assert (
        simplified("""
table Orders
  rowgroup
    row
      columnheader
        StaticText No.
      columnheader
        button [1] Date
  rowgroup
    row [2]
      cell
        link [3] NF-1
          StaticText NF-1
      cell
        StaticText new | late
  rowgroup
    row
      cell
        link [4] a
        link [5] b
      cell
""")
        == r"""table 'Orders'
  | No. | button [1] 'Date' |
  | --- | --- |
  [2] | link [3] 'NF-1' | new \| late |
  | link [4] 'a'  link [5] 'b' |  |"""
    )


def test_a_table_whose_rows_start_with_headers_is_transposed():
    assert (
        simplified("""
table
  row
    rowheader
      StaticText Height
    cell
      StaticText 40 cm
  row
    rowheader
      StaticText Weight
    cell
      StaticText 2 kg
""")
        == "table\n  | Height | Weight |\n  | --- | --- |\n  | 40 cm | 2 kg |"
    )


@pytest.mark.parametrize("role", ["table", "generic"])
def test_tables_that_lay_out_a_page_disappear(role):
    assert (
        simplified(f"""
{role}
  row
    cell
      heading Welcome
      link [1] In
    cell
      StaticText News
""")
        == "heading 'Welcome'\nlink [1] 'In'\ntext 'News'"
    )


def test_nodes_with_one_child_are_replaced_by_it_and_empty_ones_left_out():
    assert simplified("list\n  listitem\n    link [1] a\n  listitem\n    paragraph") == "link [1] 'a'"


def test_icon_fonts_and_control_characters_are_removed():
    assert simplified("link [1] \ue001Cart\u200b now") == "link [1] 'Cart now'"


def test_a_long_text_is_cut_and_says_so():
    root = UiNode("main", children=[UiNode("text", str(i)) for i in range(9)])
    assert render(root, max_lines=4).splitlines()[-1] == "(7 more lines are not shown)"
    assert len(render(root, max_lines=10).splitlines()) == 10


ROLES = [
    "StaticText", "LabelText", "generic", "paragraph", "list", "listitem", "link", "button", "heading", "img", "menu",
    "menuitem", "option", "combobox", "table", "grid", "rowgroup", "row", "cell", "columnheader", "rowheader",
    "DescriptionList", "DescriptionListTerm", "DescriptionListDetail", "Iframe", "dialog",
]  # fmt: skip
NAMES = st.sampled_from(["", "a", "b", "a b", "Cart", "1", "12", "…", "\ue001"]) | st.text(max_size=6)
STATES = st.lists(
    st.tuples(st.sampled_from(["focused", "value", "selected", "level"]), st.text(max_size=3)), max_size=2
)


@st.composite
def trees(draw):
    count = draw(st.integers(0, 40))
    depth, rows, refs = 0, [], []
    for number in range(count):
        depth = draw(st.integers(0, depth + 1))
        actionable = draw(st.booleans())
        rows.append(OutlineNode(depth, draw(st.sampled_from(ROLES)), draw(NAMES), tuple(draw(STATES))))
        refs.append(str(number + 1) if actionable else "")
    return build_tree(rows, refs, title="T"), [ref for ref in refs if ref]


@given(trees())
def test_no_pass_loses_or_repeats_an_id(drawn):
    root, refs = drawn
    assert root.refs() == refs
    for change in PASSES:
        change(root)
        assert sorted(root.refs()) == sorted(refs), change.__name__


@given(trees())
def test_simplifying_is_deterministic_and_leaves_the_tree_as_it_is(drawn):
    root, refs = drawn
    before = render(root)
    first = render(simplify(root))
    assert first == render(simplify(root))
    assert render(root) == before
    assert all(f"[{ref}]" in first for ref in refs)
    assert all(f"[{ref}]" in before for ref in refs)
