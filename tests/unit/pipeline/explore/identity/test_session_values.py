"""Which stored values decide what pages show: what is tried, what is learned, which session a result belongs to."""

import json

import pytest

from waygraph.pipeline.explore.identity.session_values import (
    SessionValues,
    Trial,
    choose_targets,
    same_values,
)

JA, DE, FR = ("cookie", "lang", "ja"), ("cookie", "lang", "de"), ("cookie", "lang", "fr")
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


def numbered(n):
    return (("cookie", "k", str(n)),)


def test_the_sessions_of_a_key_that_decides_the_page_are_bounded():
    values = values_after(Trial(frozenset(), numbered(0), "page"))
    for n in range(50):
        values.note(numbered(n))
    assert sum(values.session_of(numbered(n)) != "" for n in range(50)) == 32


@pytest.mark.parametrize("noted_before", [0, 2, 4])
def test_a_key_with_many_values_that_decides_a_part_makes_no_sessions_at_all(noted_before):
    values = SessionValues()
    for n in range(noted_before):
        values.note(numbered(n))
    values.learn(Trial(frozenset(), numbered(0), "part"))
    assert (values.session_of(numbered(0)) != "") is (noted_before < 4)
    for n in range(noted_before, 4):
        values.note(numbered(n))
    assert {values.session_of(numbered(n)) for n in range(5)} == {""}
    assert values.untried(numbered(4)) == ()


def test_values_that_were_left_before_the_trial_of_another_one_make_sessions_too():
    values = SessionValues()
    languages = [(("cookie", "lang", each),) for each in ("fr", "ja", "de", "it", "es", "pt")]
    for left in languages:
        values.note(left)
    assert values.untried(languages[-1]) == languages[-1]
    values.learn(Trial(frozenset(), languages[1], "page"))
    assert len({values.session_of(left) for left in (*languages, ())}) == 7


def test_workers_use_what_was_known_when_their_round_began():
    values = SessionValues()
    values.begin_round()
    values.decide((JA,), "part")
    assert (values.session_in_round((JA,)), values.session_of((JA,)) != "") == ("", True)
    values.begin_round()
    assert values.session_in_round((JA,)) == values.session_of((JA,))


def test_a_checkpoint_restores_what_was_learned():
    values = SessionValues()
    states = [(FR,), (JA,), (DE,), numbered(1), numbered(2)]
    for left in states[:2]:
        values.note(left)
    for trial in (Trial({TOKEN[:2]}, (JA,), "page"), none(("local", "seen", "1"))):
        values.learn(trial)
    values.begin_round()
    for left in states[2:]:
        values.note(left)
    restored = SessionValues()
    restored.load_checkpoint(json.loads(json.dumps(values.to_checkpoint())), states)
    restored.learn(Trial(frozenset(), numbered(1), "part"))
    values.learn(Trial(frozenset(), numbered(1), "part"))
    for left in (*states, numbered(3), (TOKEN,), (("local", "seen", "2"),), ()):
        assert restored.session_of(left) == values.session_of(left)
        assert restored.session_in_round(left) == values.session_in_round(left)
        assert restored.untried(left) == values.untried(left)


@pytest.mark.parametrize(
    ("area", "names"),
    [
        ("local", ("cache:/p/1", "cache:/about", "cache:/p/3")),
        ("session", ("scroll_q7x2k9w4m", "scroll_b3z8v1n6t", "scroll_c5y0p4j9r")),
        ("local", ("post-12-read", "post-7-read", "post-345-read")),
        ("cookie", ("x.example/p/1 seen", "x.example/ seen", "x.example/p/3 seen")),
    ],
)
def test_keys_that_pages_name_after_themselves_are_tried_like_one(area, names):
    first, second, third = ((area, name, "v") for name in names)
    assert values_after(none(first)).untried((third,)) == (third,)
    assert values_after(none(first), none(second)).untried((third, JA)) == (JA,)
    assert values_after(Trial({first[:2]}, (), "none")).untried((third, JA)) == (JA,)


def test_keys_of_one_shape_that_are_tried_together_count_once():
    together = Trial(frozenset(), (("local", "cache:/1", "v"), ("local", "cache:/2", "v")), "none")
    assert len(values_after(together).untried((("local", "cache:/3", "v"),))) == 1


def test_a_second_arrival_differs_in_what_it_lacks_or_changed_and_in_what_no_state_left():
    values = SessionValues()
    here = (JA, ("cookie", "gone", "1"), ("cookie", "other", "1"))
    on_the_way = ("cookie", "region", "ch")
    for left in (here, (on_the_way,)):
        values.note(left)
    again = (JA, ("cookie", "other", "2"), on_the_way, ("session", "random", "1"))
    assert values.differing(here, again) == {("cookie", "gone"), ("cookie", "other"), ("session", "random")}


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
