"""Attribution of visible texts to elements."""

from __future__ import annotations

from waygraph.index.graph import Action, Box, Segment
from waygraph.serve.views.element_boxes import ElementBoxes

TOP, MIDDLE, END = Box(0, 0, 50, 20), Box(0, 100, 50, 20), Box(0, 200, 50, 20)
BOXES = ElementBoxes(
    [
        Segment("Buy", "button", TOP),
        Segment("  Buy\n", "button", MIDDLE),
        Segment("Buy", "link", END),
        Segment("Menu", "text", MIDDLE),
    ]
)


def click(role: str, name: str, nth: int = 0) -> Action:
    return Action("click", role=role, name=name, nth=nth)


def test_the_number_of_the_action_selects_among_texts_with_its_role_and_name() -> None:
    assert BOXES.find(click("button", "Buy", 0)) == TOP
    assert BOXES.find(click("button", "buy", 1)) == MIDDLE
    assert BOXES.find(click("link", "Buy")) == END


def test_a_text_of_another_role_is_taken_only_if_it_alone_has_the_name() -> None:
    assert BOXES.find(click("button", "Menu")) == MIDDLE
    assert BOXES.find(click("tab", "Buy")) is None


def test_an_element_that_no_text_can_be_attributed_to_has_no_box() -> None:
    assert BOXES.find(click("button", "Buy", 7)) is None
    assert BOXES.find(click("button", "")) is None
    assert BOXES.find(Action("goto", url="http://x/")) is None
