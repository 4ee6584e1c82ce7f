"""The greedy choice: the nearest element that was not tried here and leads to a page that was not seen."""

from waygraph.agents.greedy.choice import GreedyMemory, ScoredElement
from waygraph.agents.observation import ObservedElement
from waygraph.index.graph import Action, Box
from waygraph.pipeline.browser.page.snapshot import Candidate


def scored(name, score, *, target="", **more):
    action = Action(kind="click", role="link", name=name, target=target)
    values = {"tag": "a", "disabled": False, "submits": "", "download": False, "box": Box(0, 0, 9, 9), **more}
    return ScoredElement(ObservedElement("1", Candidate(action, **values)), score)


FAR, NEAR = scored("far", 0.1), scored("near", 0.9)


def test_the_nearest_element_is_chosen_once_in_each_state():
    memory = GreedyMemory()
    assert memory.choose("s", [FAR, NEAR]) is NEAR
    memory.note_tried("s", NEAR.element)
    assert memory.choose("s", [FAR, NEAR]) is FAR
    assert memory.choose("other", [FAR, NEAR]) is NEAR
    memory.note_tried("s", FAR.element)
    assert memory.choose("s", [FAR, NEAR]) is None


def test_links_to_pages_that_were_seen_are_closed_whatever_their_fragment():
    memory = GreedyMemory()
    memory.note_page("http://a.example/x#top")
    assert memory.choose("s", [scored("x", 1, target="http://a.example/x#end")]) is None
    assert memory.choose("s", [scored("y", 1, target="http://a.example/y")]) is not None


def test_disabled_covered_and_nameless_elements_are_closed():
    memory = GreedyMemory()
    closed = [scored("a", 1, disabled=True), scored("b", 1, covered=True), scored("", 1)]
    assert memory.choose("s", closed) is None
