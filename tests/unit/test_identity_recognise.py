"""Which looks are one state? Noise never makes a state, and nothing but noise is ever merged away."""

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from index.graph import Action, Merge, UrlPolicy
from pipeline.browser.features import features
from pipeline.browser.snapshot import Candidate
from pipeline.explore.identity import Noise, Recogniser, change
from pipeline.explore.identity.evidence import evidence
from pipeline.explore.identity.rebase import rebase
from pipeline.explore.state import State
from tests.sites import still
from tests.sites.noise import KINDS, noise_pages, random_hex
from tests.sites.still import BASE, NOWHERE, Walk

HOME = f"{BASE}/"


LOOKS = {}


def look(html, url):
    """A look, kept as the explorer keeps looks."""
    seen = still.look(html, url)
    return LOOKS.setdefault(seen.id, seen)


def recogniser(mode="tolerant"):
    return Recogniser(mode, UrlPolicy(), LOOKS.__getitem__)


def known(*looks, mode="tolerant"):
    found = recogniser(mode)
    for seen in looks:
        assert found.place(seen, source=None, came_by="load").merge is None
        found.add(seen, "load")
    return found


PAGE = "<h1>Shop</h1><div><button>Menu</button><ul hidden><li><a href=/contact>Contact</a></li></ul></div><p>Hello</p>"
MENU = PAGE.replace(" hidden", "")
AD = "<div><p>Fly to Rome</p></div>"


def test_a_look_with_a_known_id_is_that_state_in_every_mode():
    seen = look(PAGE, HOME)
    for mode in ("exact", "tolerant"):
        assert known(seen, mode=mode).place(look(PAGE, HOME), source=None, came_by="load").node_id == seen.id


def test_what_only_listeners_tell_is_no_evidence():
    """An application whose parts are boxes with listeners; a browser of somebody else shows their texts alone."""
    seen = look(PAGE, HOME)
    parts = [Candidate(Action(kind, name=f"Part {n}"), "div", disabled=False, submits="", download=False, box=NOWHERE)
             for n in range(9) for kind in ("click", "hover")]  # fmt: skip
    watched = replace(seen, candidates=(*seen.candidates, *parts))
    state = State.of(watched, "", 0, None)
    (found,) = evidence({seen.id: state}, recogniser(), lambda _: watched, lambda _: True).values()
    assert set(found.features) == set(features(seen))


def test_what_an_action_uncovered_or_enabled_is_so_in_a_page_that_differs_in_noise_as_well():
    """An invitation over a page with an advertisement; the recorded look had none."""
    state = look("<button>Close</button><button>Behind</button>", HOME)
    before = look("<i></i><button>Close</button><button>Behind</button>", HOME)

    def behind(seen, **flags):
        close, button = seen.candidates
        return replace(seen, candidates=(close, structs.replace(button, **flags)))

    away = {"covered": False, "disabled": False}
    in_front = {"covered": True, "disabled": True}
    shown = rebase(behind(before, **away), behind(before, **in_front), behind(state, **in_front))
    assert [(c.action.name, c.covered, c.disabled) for c in shown.candidates] == [
        ("Close", False, False),
        ("Behind", False, False),
    ]


def test_rows_that_a_list_has_to_be_scrolled_to_are_nothing_that_a_page_shows():
    seen = look(PAGE, HOME)
    action = Action("click", role="link", name="Row 12", xpath="/html[1]/body[1]/div[1] ~~~ 400/a[3]")
    row = Candidate(action, "a", disabled=False, submits="", download=False, box=NOWHERE)
    assert features(replace(seen, candidates=(*seen.candidates, row))) == features(seen)


def test_another_load_of_a_url_is_the_state_that_its_first_load_showed():
    first, again = look(PAGE, HOME), look(AD + PAGE, HOME)
    placement = known(first).place(again, source=None, came_by="load")
    assert placement.node_id == first.id
    assert placement.merge == Merge(first.id, again.id, "reload", HOME)


def test_exact_mode_keeps_another_load_apart():
    first, again = look(PAGE, HOME), look(AD + PAGE, HOME)
    assert known(first, mode="exact").place(again, source=None, came_by="load").node_id == again.id


def test_what_came_and_went_between_two_loads_makes_no_state_in_the_page():
    slides = [look(f"{PAGE}<div>{'<i>x</i>' * n}</div>", HOME) for n in (1, 2, 3)]
    found = known(slides[0])
    found.learn(slides[0], slides[2])
    placement = found.place(slides[1], source=slides[0], came_by="in_page")
    assert placement.merge == Merge(slides[0].id, slides[1].id, "volatile", HOME)


def test_elements_noted_as_volatile_make_no_state():
    still, moved = look(PAGE, HOME), look(f"{PAGE}<i></i>", HOME)
    found = known(still)
    found.note_noise(HOME, Noise.between(still, moved))
    assert found.place(moved, source=still, came_by="in_page").merge.reason == "volatile"


def bars(count, page=PAGE):
    return look(f"{page}<p>{'<i>|</i>' * count}</p>", HOME)


def test_what_grows_makes_no_state_at_a_size_that_was_never_seen():
    found = known(bars(2))
    found.learn(bars(2), bars(5))
    assert found.place(bars(8), source=bars(2), came_by="in_page").merge.reason == "volatile"


@pytest.mark.parametrize("meanwhile", [1, 5, 6])
def test_what_was_closed_again_is_the_page_whatever_grew_meanwhile(meanwhile):
    found, menu = known(bars(4)), bars(4, MENU)
    found.learn(bars(4), bars(2))
    assert found.place(menu, source=bars(4), came_by="in_page").merge is None
    found.add(menu, "in_page")
    assert found.place(bars(meanwhile), source=menu, came_by="in_page").node_id == bars(4).id


def test_a_picture_that_was_opened_is_a_state_of_a_page_in_which_something_grows():
    opened = look(f"{PAGE}<p>{'<i>|</i>' * 2}</p><div><img></div>", HOME)
    found = known(bars(2))
    found.learn(bars(2), bars(5))
    assert found.place(opened, source=bars(2), came_by="in_page").merge is None


def test_an_open_menu_is_a_state_even_where_all_its_elements_have_come_and_gone_before():
    first, menu = look(PAGE, HOME), look(MENU, HOME)
    found = known(first)
    found.note_noise(HOME, Noise(Noise.between(first, menu).elements))
    assert found.place(menu, source=first, came_by="in_page").merge is None


def test_the_same_menu_opened_in_two_loads_of_a_page_with_advertisements_is_one_state():
    first, again = look(PAGE, HOME), look(AD + PAGE, HOME)
    menu, menu_again = look(MENU, HOME), look(AD + MENU, HOME)
    found = known(first)
    assert found.place(menu, source=first, came_by="in_page").merge is None
    found.add(menu, "in_page")
    found.place(again, source=None, came_by="load")
    placement = found.place(
        menu_again, source=first, came_by="in_page", changed=change(features(again), features(menu_again))
    )
    assert placement.merge == Merge(menu.id, menu_again.id, "same_change", HOME)


def test_two_tabs_of_a_page_with_noise_stay_two_states():
    panels = "<h1>T</h1><p {}>One thing</p><div {}><p>Other</p></div>"
    tabs = [look(panels.format(*hidden), HOME) for hidden in (("", "hidden"), ("hidden", ""))]
    found = known(tabs[0])
    found.learn(tabs[0], look(f"{AD}<h1>T</h1><p>One thing</p>", HOME))
    assert found.place(tabs[1], source=tabs[0], came_by="in_page").merge is None


def test_a_page_agrees_with_a_recorded_state_when_it_shows_what_makes_that_state():
    first, menu = look(PAGE, HOME), look(MENU, HOME)
    found = known(first)
    found.place(menu, source=first, came_by="in_page")
    found.add(menu, "in_page")
    again, menu_again = look(AD + PAGE, HOME), look(AD + MENU, HOME)
    assert found.agrees(again, first.id, came_by="load")
    assert found.agrees(menu_again, menu.id, came_by="in_page")
    assert not found.agrees(again, menu.id, came_by="in_page")
    assert not found.agrees(look(PAGE, f"{HOME}other"), first.id, came_by="load")
    assert not known(first, mode="exact").agrees(again, first.id, came_by="load")


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_noise_makes_no_further_state_however_often_pages_are_loaded(kind):
    found = Walk(noise_pages((kind,)), depth=6).run()
    assert sorted(path.partition("?")[0] for path in found.paths()) == sorted({"/", "/about", f"/{kind.name}"})


def test_urls_that_differ_in_a_known_token_alone_are_one_page():
    one, other = (look(PAGE, f"{HOME}a?token={random_hex(n)}") for n in (1, 2))
    merge = known(one).place(other, source=None, came_by="load").merge
    assert merge == Merge(one.id, other.id, "volatile_parameters", other.url)


def test_tokens_that_lead_to_different_pages_name_pages_from_then_on():
    one, other = f"{HOME}share?token={random_hex(1)}", f"{HOME}share?token={random_hex(2)}"
    found = known(look("<h1>Mine</h1>", one))
    table = look(f"<table>{'<tr><td>x</td></tr>' * 9}</table>", other)
    assert found.place(table, source=None, came_by="load").merge is None
    assert found.key(one) != found.key(other)


def test_pages_of_one_template_are_not_one_page_for_the_name_of_a_parameter():
    talk = "<title>{0}</title><h1>{0}</h1><p>Everything about {0}</p><a href='/speaker/{0}'>Who speaks of {0}</a>"
    one, other = (look(talk.format(what), f"{HOME}talk?session_id={n}") for n, what in ((101, "bees"), (102, "wasps")))
    assert one.structure == other.structure
    found = known(one)
    assert found.key(one.url) == found.key(other.url)
    assert found.place(other, source=None, came_by="load").merge is None
    assert found.key(one.url) != found.key(other.url)


def test_sort_orders_without_effect_show_the_same_page():
    body = "<h1>List</h1><a href='/l?sort=name'>Name</a><a href='/l?sort=price'>Price</a><p>One item</p>"
    first, sorted_ = look(body, f"{HOME}l"), look(body, f"{HOME}l?sort=name")
    assert known(first).place(sorted_, source=None, came_by="load").merge.reason == "same_content"


@pytest.mark.parametrize("urls", [("p/1", "p/2"), ("p?id=1", "p?id=2")])
def test_things_that_are_numbered_stay_apart_even_when_they_look_the_same(urls):
    first, second = (look("<h1>Out of stock</h1>", HOME + url) for url in urls)
    assert known(first).place(second, source=None, came_by="load").merge is None


def test_pictures_without_texts_stay_apart_since_their_links_lead_on():
    first, second = (
        look(f"<h1>Picture</h1><a href='/v?name={following}'>Next</a>", f"{HOME}v?name={name}")
        for name, following in (("cat", "dog"), ("dog", "cow"))
    )
    assert known(first).place(second, source=None, came_by="load").merge is None


# ---- properties ----------------------------------------------------------------------------------------------------

parts = st.sampled_from(
    ["<p>a</p>", "<p>b</p>", "<i></i>", "<a href=/x>x</a>", "<div><p>c</p></div>", "<button>B</button>"]
)
bodies = st.lists(parts, max_size=5).map("".join)
paths = st.sampled_from(["", "a", "a?x=1", "a?token=9f86d081884c7d659a2f", "b/17", "b/18?sort=name"])
steps = st.lists(st.tuples(bodies, paths, st.sampled_from(["load", "in_page"])), max_size=12)


def follow(found, steps, known=None):
    """Place and add looks as the explorer does; each is found from the one before."""
    states, answers, source = dict(known or {}), [], None
    for body, path, came_by in steps:
        seen = look(body, HOME + path)
        placement = found.place(seen, source=source, came_by=came_by)
        if placement.merge is None and placement.node_id not in states:
            states[seen.id] = seen
            found.add(seen, came_by)
        answers.append(placement)
        source = states[placement.node_id]
    return states, answers


@given(steps)
def test_exact_mode_never_merges(steps):
    states, answers = follow(recogniser("exact"), steps)
    assert all(answer.merge is None for answer in answers)
    assert set(states) == {look(body, HOME + path).id for body, path, _ in steps}


@given(steps)
def test_a_look_that_was_placed_is_placed_there_again(steps):
    found = recogniser()
    states, answers = follow(found, steps)
    for (body, path, _), answer in zip(steps, answers, strict=True):
        if answer.merge is None:
            assert found.place(look(body, HOME + path), source=None, came_by="load") == answer
        assert answer.node_id in states


@given(steps)
def test_the_same_calls_give_the_same_answers(steps):
    assert follow(recogniser(), steps)[1] == follow(recogniser(), steps)[1]


@given(steps, steps)
def test_what_is_remembered_is_enough_to_go_on(before, after):
    one, other = recogniser(), recogniser()
    states, _ = follow(one, before)
    other.recall(json.loads(json.dumps(one.remember())))
    assert other.remember() == one.remember()
    assert follow(one, after, states) == follow(other, after, states)
