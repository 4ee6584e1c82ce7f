"""Later prompts show highlighted elements with what is around them, and nothing that is too long."""

from waygraph.agents.observation.ui_tree import UiNode
from waygraph.agents.occam.pivotal import MAX_NODES, pivotal_text


def page(*children):
    return UiNode("RootWebArea", "Shop", children=list(children))


def test_descendants_ancestors_and_named_siblings_are_kept():
    tree = page(
        UiNode("navigation", children=[UiNode("link", "Home", ref="1")]),
        UiNode(
            "main",
            children=[
                UiNode("heading", "Lamps"),
                UiNode("listitem", ref="2", children=[UiNode("text", "Blue lamp")]),
                UiNode("generic"),
                UiNode("group", "Filters", children=[UiNode("link", "Red", ref="3")]),
            ],
        ),
    )
    shown = pivotal_text(tree, ["2"])
    assert shown.expandtabs(2).splitlines() == [
        "RootWebArea 'Shop'",
        "  main",
        "    heading 'Lamps'",
        "    listitem [2]",
        "      text 'Blue lamp'",
        "    group 'Filters'",
    ]
    assert [node.ref for node in tree.walk() if node.ref] == ["1", "2", "3"], "the page's own tree is not changed"


def test_an_element_in_a_cell_of_a_table_keeps_its_row():
    row = UiNode("row", cells=[[UiNode("link", "7", ref="4")], [UiNode("text", "paid")]])
    other = UiNode("row", cells=[[UiNode("link", "8", ref="5")], [UiNode("text", "new")]])
    assert "paid" in pivotal_text(page(UiNode("table", children=[row, other])), ["4"])
    assert "new" not in pivotal_text(page(UiNode("table", children=[row, other])), ["4"])


def test_ids_that_are_not_on_the_page_and_long_parts_have_no_text():
    many = [UiNode("link", f"Link {number}", ref=str(number)) for number in range(1, MAX_NODES + 1)]
    assert pivotal_text(page(*many), ["99"]) is None
    assert pivotal_text(page(*many), []) is None
    assert pivotal_text(page(*many), ["1"]) is None
    assert pivotal_text(page(*many[:5]), ["1"]) is not None
    assert pivotal_text(page(UiNode("text", "word " * 300, ref="1")), ["1"]) is None
