"""What agents report is routed around while it is fresh, kept for maintenance, and cannot grow without end."""

import errno
import json
import os
from types import SimpleNamespace

import pytest

from index.graph import Action, Edge, InteractionGraph, Merge, Node, Recognition
from index.store.feedback import FeedbackLog
from serve import feedback as module
from serve.feedback import Feedback, hidden
from waygraph.errors import StoreError
from waygraph.schemas import WalkedStep

SITE = "shop.example"
HOME, CART, OTHER_LOOK = "a" * 32, "b" * 32, "c" * 32
CLICK = Action("click", role="link", name="Cart", xpath="/a[1]")


def opened():
    nodes = [Node(id_, f"http://{SITE}/{id_[0]}", id_, (), 0, addressable=True) for id_ in (HOME, CART)]
    return SimpleNamespace(
        site=SITE,
        version=3,
        graph=InteractionGraph(nodes, [Edge(HOME, CART, CLICK)]),
        recognition=Recognition(merges={OTHER_LOOK: Merge(CART, OTHER_LOOK, "volatile", "")}),
        loaded_by=lambda url: [node.id for node in nodes if node.url == url],
    )


def walked(outcome, action=CLICK, source=HOME, target=CART):
    return WalkedStep(source=source, action=action.to_json(), target=target, outcome=outcome)


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def notes(tmp_path):
    return FeedbackLog(tmp_path)


def test_a_failed_step_is_avoided_until_the_report_is_old(clock, notes):
    feedback = Feedback(60, clock=clock)
    assert feedback.take(opened(), [walked("gone")], notes).taken == 1
    assert [edge.action for edge in feedback.avoided(opened()).edges] == [CLICK]
    clock.now = 61
    assert not feedback.avoided(opened())


def test_a_step_that_works_again_is_not_avoided(clock, notes):
    feedback = Feedback(60, clock=clock)
    feedback.take(opened(), [walked("drifted"), walked("ok")], notes)
    assert not feedback.avoided(opened())


def test_a_report_by_another_look_at_a_state_is_one_on_that_state(clock, notes):
    feedback = Feedback(60, clock=clock)
    assert feedback.take(opened(), [walked("gone", target=OTHER_LOOK)], notes).taken == 1
    assert feedback.avoided(opened()).edges


def test_a_goto_that_failed_is_avoided_from_everywhere(clock, notes):
    feedback = Feedback(60, clock=clock)
    goto = Action("goto", url=f"http://{SITE}/b")
    assert feedback.take(opened(), [walked("drifted", goto, source=None)], notes).taken == 1
    assert feedback.avoided(opened()).gotos == (CART,)


def test_steps_that_the_map_does_not_hold_are_counted_and_not_kept(clock, notes):
    feedback = Feedback(60, clock=clock)
    unknown = [
        walked("gone", Action("click", name="Nowhere")),
        walked("gone", source="f" * 32),
        walked("gone", target=HOME),
    ]
    answer = feedback.take(opened(), unknown, notes)
    assert (answer.taken, answer.unknown) == (0, 3)
    assert not feedback.avoided(opened())
    assert list(notes.read(SITE)) == []


def test_nonsense_reports_cannot_fill_the_memory(clock, notes, monkeypatch):
    monkeypatch.setattr(module, "MOST_FAILURES", 5)
    site = opened()
    for number in range(9):
        action = Action("click", name=str(number))
        site.graph.add_edge(Edge(HOME, CART, action))
    feedback = Feedback(60, clock=clock)
    feedback.take(site, [walked("gone", Action("click", name=str(number))) for number in range(9)], notes)
    assert [edge.action.name for edge in feedback.avoided(site).edges] == ["4", "5", "6", "7", "8"]


def test_reports_are_kept_for_maintenance(clock, notes):
    Feedback(60, clock=clock).take(opened(), [walked("gone"), walked("ok")], notes)
    kept = list(notes.read(SITE))
    assert [(line["outcome"], line["version"], line["source"], line["target"]) for line in kept] == [
        ("gone", 3, HOME, CART),
        ("ok", 3, HOME, CART),
    ]
    assert kept[0]["action"]["name"] == "Cart"


def test_the_log_keeps_the_newer_half_when_it_is_full_and_reads_past_a_cut_line(tmp_path, monkeypatch):
    monkeypatch.setattr("index.store.feedback.MOST_BYTES", 500)
    log = FeedbackLog(tmp_path)
    for number in range(60):
        log.add(SITE, 1, [{"number": number}])
    with (tmp_path / "runs" / "feedback" / f"{SITE}.jsonl").open("a") as cut:
        cut.write('{"number": 6')
    numbers = [line["number"] for line in log.read(SITE)]
    assert numbers == list(range(numbers[0], 60))
    assert len(numbers) < 30


def test_a_store_that_cannot_be_written_loses_no_request(clock, notes, monkeypatch, caplog):
    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(StoreError, match="No space"):
        notes.add(SITE, 1, [{}])
    feedback = Feedback(60, clock=clock)
    for _ in range(3):
        assert feedback.take(opened(), [walked("gone")], notes).taken == 1
    assert feedback.avoided(opened())
    assert sum("not kept" in record.message for record in caplog.records) == 1


def test_a_site_key_names_no_other_file(notes):
    with pytest.raises(Exception, match="site key"):
        notes.add("../../etc/passwd", 1, [{}])


def test_lines_are_json(tmp_path):
    FeedbackLog(tmp_path).add(SITE, 1, [{"name": "a\nb"}])
    (line,) = (tmp_path / "runs" / "feedback" / f"{SITE}.jsonl").read_text().splitlines()
    assert json.loads(line)["name"] == "a\nb"


def test_a_link_that_a_browser_does_not_show_is_avoided_wherever_it_is():
    entry = Action("click", role="link", name="Cart", xpath="/nav[1]/a[1]", target=f"http://{SITE}/b")
    elsewhere = Action("click", role="link", name="Cart", xpath="/nav[2]/a[1]", target=f"http://{SITE}/b")
    nodes = [Node(id_, f"http://{SITE}/{id_[0]}", id_, (), 0, addressable=True) for id_ in (HOME, CART, OTHER_LOOK)]
    edges = [Edge(HOME, CART, entry), Edge(OTHER_LOOK, CART, elsewhere), Edge(HOME, OTHER_LOOK, CLICK)]
    avoided = hidden(SimpleNamespace(graph=InteractionGraph(nodes, edges)), [entry])
    assert [edge.source for edge in avoided.edges] == [HOME, OTHER_LOOK]
    assert not hidden(SimpleNamespace(graph=None), [])
