"""Which stored values decide what pages show: what is tried, what is learned, which session a result belongs to."""

import json

import pytest

from waygraph.pipeline.explore.identity.session_values import (
    SessionValues,
    Trial,
    choose_targets,
    same_values,
)

JA, DE = ("cookie", "lang", "ja"), ("cookie", "lang", "de")
TOKEN = ("cookie", "token", "x1")


def values_after(*trials):
    values = SessionValues()
    for trial in trials:
        values.learn(trial)
    return values


def none(item):
    return Trial(frozenset(), (item,), "none")


def test_a_result_belongs_to_the_prepared_session_until_a_trial_shows_an_effect():
    values = SessionValues()
    assert values.untried((JA,)) == (JA,)
    assert values.session_of((JA,)) == ""
    values.learn(Trial(frozenset(), (JA,), "page"))
    assert values.session_of((JA, TOKEN)) == values.session_of((JA,)) != ""
    assert values.untried((JA, TOKEN)) == (TOKEN,)


def test_each_value_of_a_key_that_decides_is_a_session():
    values = values_after(Trial(frozenset(), (JA,), "page"))
    values.note((DE,))
    assert len({values.session_of(left) for left in ((), (JA,), (DE,))}) == 3
    assert values.session_of((("local", "lang", "ja"),)) == ""


def test_a_key_whose_value_differs_at_the_second_arrival_is_tried_no_more():
    assert values_after(Trial({TOKEN[:2]}, (), "none")).untried((TOKEN, ("cookie", "token", "x2"))) == ()


def test_a_key_is_tried_with_two_values():
    assert values_after(none(JA)).untried((DE,)) == (DE,)
    assert values_after(none(JA), none(DE)).untried((("cookie", "lang", "fr"),)) == ()


def test_a_key_that_names_the_page_is_not_tried():
    values = SessionValues()
    for page in "abcd":
        values.note((("cookie", "last", page),))
    assert values.untried((("cookie", "last", "e"),)) == ()


@pytest.mark.parametrize(("effect", "sessions"), [("part", 3), ("page", 32)])
def test_the_sessions_of_a_key_are_bounded(effect, sessions):
    values = values_after(Trial(frozenset(), (("cookie", "k", "0"),), effect))
    for n in range(50):
        values.note((("cookie", "k", str(n)),))
    assert sum(values.session_of((("cookie", "k", str(n)),)) != "" for n in range(50)) == sessions


def test_workers_use_what_was_known_when_their_round_began():
    values = SessionValues()
    values.begin_round()
    values.decide((JA,), "part")
    assert (values.session_in_round((JA,)), values.session_of((JA,)) != "") == ("", True)
    values.begin_round()
    assert values.session_in_round((JA,)) == values.session_of((JA,))


def test_a_checkpoint_restores_what_was_learned():
    values = values_after(Trial({TOKEN[:2]}, (JA,), "page"), none(("local", "seen", "1")))
    values.begin_round()
    values.note((DE,))
    restored = SessionValues()
    restored.load_checkpoint(json.loads(json.dumps(values.to_checkpoint())), [(DE,)])
    for left in ((JA,), (DE,), (TOKEN,), (("local", "seen", "2"),), ()):
        assert restored.session_of(left) == values.session_of(left)
        assert restored.session_in_round(left) == values.session_in_round(left)
        assert restored.untried(left) == values.untried(left)


def test_only_values_that_two_arrivals_leave_count():
    assert same_values((JA, TOKEN), (JA, ("cookie", "token", "x2"))) == (JA,)


def test_links_of_all_kinds_are_tried():
    links = ["/set?view=grid", "/", "/a", "/b", "/c", "/own/1", "/own/2"]
    assert choose_targets("/set?view=rows", links, {"/", "/a", "/b", "/c"}, count=3) == [
        "/set?view=grid",
        "/",
        "/own/1",
    ]
    assert choose_targets("/x", ["/x", "/a", "/a", "/b"], {"/a", "/b"}, count=3) == ["/a", "/b"]
    assert choose_targets("/x", [], set(), count=3) == []
