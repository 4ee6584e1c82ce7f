"""Paths avoid reported failures for a while; reports are logged for maintenance and limited in memory."""

import errno
import json
import os
from types import SimpleNamespace

import pytest

from waygraph.core.errors import StoreError
from waygraph.core.schemas import WalkedStep
from waygraph.index.graph import Action, Edge, InteractionGraph, Lead, Merge, Node, Recognition, lead_id
from waygraph.index.store.feedback import FeedbackLog
from waygraph.serve.query import feedback as module
from waygraph.serve.query.avoidance import parts_of_hidden_elements
from waygraph.serve.query.feedback import StepFeedback

SITE = "shop.example"
HOME, CART, OTHER_LOOK = "a" * 32, "b" * 32, "c" * 32
CLICK = Action("click", role="link", name="Cart", xpath="/a[1]")
LEAD = Lead(lead_id(f"http://{SITE}/new"), f"http://{SITE}/new", ("New",), "", "", CART, Action("click", name="New"), 2)


def opened():
    nodes = [Node(id_, f"http://{SITE}/{id_[0]}", id_, (), 0, addressable=True) for id_ in (HOME, CART)]
    return SimpleNamespace(
        site=SITE,
        version=3,
        graph=InteractionGraph(nodes, [Edge(HOME, CART, CLICK)]),
        recognition=Recognition(merges={OTHER_LOOK: Merge(CART, OTHER_LOOK, "volatile", "")}),
        states_loaded_by=lambda url: [node.id for node in nodes if node.url == url],
        leads={LEAD.id: LEAD},
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


def test_failed_step_is_avoided_until_the_report_expires(clock, notes):
    feedback = StepFeedback(60, clock=clock)
    assert feedback.record(opened(), [walked("gone")], notes).taken == 1
    assert [edge.action for edge in feedback.recent_failures(opened()).edges] == [CLICK]
    clock.now = 61
    assert not feedback.recent_failures(opened())


def test_a_step_that_works_again_is_not_avoided(clock, notes):
    feedback = StepFeedback(60, clock=clock)
    feedback.record(opened(), [walked("drifted"), walked("ok")], notes)
    assert not feedback.recent_failures(opened())


@pytest.mark.parametrize(("action", "source"), [(LEAD.action, CART), (Action("goto", url=LEAD.url), None)])
def test_steps_to_leads_are_recorded_and_avoided_after_failures(clock, notes, action, source):
    feedback = StepFeedback(60, clock=clock)
    assert feedback.record(opened(), [walked("drifted", action, source, LEAD.id)], notes).taken == 1
    failures = feedback.recent_failures(opened())
    assert (LEAD.id in failures.gotos) == (action.kind == "goto")
    assert [edge.target for edge in failures.edges] == ([] if action.kind == "goto" else [LEAD.id])
    assert [step["target"] for step in notes.read(SITE)] == [LEAD.id]


def test_a_report_with_the_id_of_another_snapshot_counts_for_its_state(clock, notes):
    feedback = StepFeedback(60, clock=clock)
    assert feedback.record(opened(), [walked("gone", target=OTHER_LOOK)], notes).taken == 1
    assert feedback.recent_failures(opened()).edges


def test_a_failed_goto_is_avoided_from_every_state(clock, notes):
    feedback = StepFeedback(60, clock=clock)
    goto = Action("goto", url=f"http://{SITE}/b")
    assert feedback.record(opened(), [walked("drifted", goto, source=None)], notes).taken == 1
    assert feedback.recent_failures(opened()).gotos == (CART,)


def test_steps_that_the_map_does_not_have_are_counted_and_not_kept(clock, notes):
    feedback = StepFeedback(60, clock=clock)
    unknown = [
        walked("gone", Action("click", name="Nowhere")),
        walked("gone", source="f" * 32),
        walked("gone", target=HOME),
    ]
    answer = feedback.record(opened(), unknown, notes)
    assert (answer.taken, answer.unknown) == (0, 3)
    assert not feedback.recent_failures(opened())
    assert list(notes.read(SITE)) == []


def test_number_of_remembered_failures_is_bounded(clock, notes, monkeypatch):
    monkeypatch.setattr(module, "MAX_FAILURES", 5)
    site = opened()
    for number in range(9):
        action = Action("click", name=str(number))
        site.graph.add_edge(Edge(HOME, CART, action))
    feedback = StepFeedback(60, clock=clock)
    feedback.record(site, [walked("gone", Action("click", name=str(number))) for number in range(9)], notes)
    assert [edge.action.name for edge in feedback.recent_failures(site).edges] == ["4", "5", "6", "7", "8"]


def test_reports_are_kept_for_maintenance(clock, notes):
    StepFeedback(60, clock=clock).record(opened(), [walked("gone"), walked("ok")], notes)
    kept = list(notes.read(SITE))
    assert [(line["outcome"], line["version"], line["source"], line["target"]) for line in kept] == [
        ("gone", 3, HOME, CART),
        ("ok", 3, HOME, CART),
    ]
    assert kept[0]["action"]["name"] == "Cart"


def test_full_log_keeps_its_newer_half_and_skips_a_truncated_line(tmp_path, monkeypatch):
    monkeypatch.setattr("waygraph.index.store.feedback.MAX_LOG_BYTES", 500)
    log = FeedbackLog(tmp_path)
    for number in range(60):
        log.add(SITE, 1, [{"number": number}])
    with (tmp_path / "runs" / "feedback" / f"{SITE}.jsonl").open("a") as cut:
        cut.write('{"number": 6')
    numbers = [line["number"] for line in log.read(SITE)]
    assert numbers == list(range(numbers[0], 60))
    assert len(numbers) < 30


def test_a_read_only_store_fails_no_report_and_is_logged_once(clock, notes, monkeypatch, caplog):
    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(StoreError, match="No space"):
        notes.add(SITE, 1, [{}])
    feedback = StepFeedback(60, clock=clock)
    for _ in range(3):
        assert feedback.record(opened(), [walked("gone")], notes).taken == 1
    assert feedback.recent_failures(opened())
    assert sum("not kept" in record.message for record in caplog.records) == 1


def test_a_site_key_cannot_name_a_file_outside_the_folder(notes):
    with pytest.raises(Exception, match="site key"):
        notes.add("../../etc/passwd", 1, [{}])


def test_lines_are_json(tmp_path):
    FeedbackLog(tmp_path).add(SITE, 1, [{"name": "a\nb"}])
    (line,) = (tmp_path / "runs" / "feedback" / f"{SITE}.jsonl").read_text().splitlines()
    assert json.loads(line)["name"] == "a\nb"


def test_a_link_that_a_browser_does_not_show_is_avoided_in_every_state():
    entry = Action("click", role="link", name="Cart", xpath="/nav[1]/a[1]", target=f"http://{SITE}/b")
    elsewhere = Action("click", role="link", name="Cart", xpath="/nav[2]/a[1]", target=f"http://{SITE}/b")
    nodes = [Node(id_, f"http://{SITE}/{id_[0]}", id_, (), 0, addressable=True) for id_ in (HOME, CART, OTHER_LOOK)]
    edges = [Edge(HOME, CART, entry), Edge(OTHER_LOOK, CART, elsewhere), Edge(HOME, OTHER_LOOK, CLICK)]
    avoided = parts_of_hidden_elements(SimpleNamespace(graph=InteractionGraph(nodes, edges), leads={}), [entry])
    assert [edge.source for edge in avoided.edges] == [HOME, OTHER_LOOK]
    assert not parts_of_hidden_elements(SimpleNamespace(graph=None), [])


LONG = "x" * 60_000


@pytest.mark.parametrize(
    "report",
    [
        walked("gone", Action("goto", url=LEAD.url, name=LONG, xpath=LONG, css=LONG, target=LONG), LONG[:64], LEAD.id),
        walked("gone", Action("goto", url=f"http://{SITE}/a", frame=(LONG,) * 8, value=LONG), None, HOME),
        walked("gone", CLICK, HOME, OTHER_LOOK),
    ],
)
def test_only_what_names_the_step_of_the_map_is_kept(clock, notes, report):
    feedback = StepFeedback(60, clock=clock)
    assert feedback.record(opened(), [report], notes).taken == 1
    assert len(str(feedback._failed)) < 1_000
    (row,) = notes.read(SITE)
    assert len(json.dumps(row)) < 1_000
    assert (row["outcome"], row["version"]) == ("gone", 3)
    assert feedback.recent_failures(opened())


def test_loading_an_address_that_shows_another_state_is_no_step_of_the_map(clock, notes):
    feedback = StepFeedback(60, clock=clock)
    reported = walked("gone", Action("goto", url=LEAD.url), None, "f" * 64)
    assert feedback.record(opened(), [reported], notes).unknown == 1
    assert not feedback.recent_failures(opened())
