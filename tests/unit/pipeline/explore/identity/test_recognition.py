"""Recognition of known states: noise never makes a state, and only noise is merged."""

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from tests.sites import static_pages
from tests.sites.noise import KINDS, noise_pages, random_hex
from tests.sites.static_pages import BASE, NOWHERE, Walk
from waygraph.core.urls import UrlPolicy
from waygraph.index.graph import Action, Merge
from waygraph.pipeline.browser.page.features import features
from waygraph.pipeline.browser.page.snapshot import Candidate
from waygraph.pipeline.explore.identity import Recogniser, feature_change
from waygraph.pipeline.explore.identity.evidence import build_evidence
from waygraph.pipeline.explore.identity.rebase import noise_between, rebase
from waygraph.pipeline.explore.records.noise import Noise
from waygraph.pipeline.explore.records.state import State

HOME = f"{BASE}/"


SNAPSHOTS = {}


def look(html, url):
    """Return a snapshot, stored as the explorer stores snapshots."""
    seen = static_pages.look(html, url)
    return SNAPSHOTS.setdefault(seen.id, seen)


def recogniser(mode="tolerant"):
    return Recogniser(mode, UrlPolicy(), SNAPSHOTS.__getitem__)


def known(*looks, mode="tolerant"):
    found = recogniser(mode)
    for seen in looks:
        placement = found.place(seen, source=None, arrival="load")
        assert placement.merge is None
        found.add(seen, placement, "load")
    return found


PAGE = "<h1>Shop</h1><div><button>Menu</button><ul hidden><li><a href=/contact>Contact</a></li></ul></div><p>Hello</p>"
MENU = PAGE.replace(" hidden", "")
AD = "<div><p>Fly to Rome</p></div>"


def test_a_snapshot_with_a_known_id_is_that_state_in_every_mode():
    seen = look(PAGE, HOME)
    for mode in ("exact", "tolerant"):
        assert known(seen, mode=mode).place(look(PAGE, HOME), source=None, arrival="load").node_id == seen.id


def test_elements_known_by_event_listeners_only_are_no_evidence():
    """An application whose parts are boxes with event listeners; an agent's browser knows their texts only."""
    seen = look(PAGE, HOME)
    parts = [Candidate(Action(kind, name=f"Part {n}"), "div", disabled=False, submits="", download=False, box=NOWHERE)
             for n in range(9) for kind in ("click", "hover")]  # fmt: skip
    watched = replace(seen, candidates=(*seen.candidates, *parts))
    state = State.of(watched, "", 0, None)
    (found,) = build_evidence({seen.id: state}, recogniser(), lambda _: watched, lambda _: True).values()
    assert set(found.features) == set(features(seen))


def test_an_uncovered_or_enabled_element_stays_so_when_the_snapshot_is_rebased():
    """A dialog over a page with an advertisement; the recorded snapshot has none."""
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


def test_rows_that_need_scrolling_are_no_features_of_a_page():
    seen = look(PAGE, HOME)
    action = Action("click", role="link", name="Row 12", xpath="/html[1]/body[1]/div[1] ~~~ 400/a[3]")
    row = Candidate(action, "a", disabled=False, submits="", download=False, box=NOWHERE)
    assert features(replace(seen, candidates=(*seen.candidates, row))) == features(seen)


def test_second_load_of_a_url_is_the_state_of_its_first_load():
    first, again = look(PAGE, HOME), look(AD + PAGE, HOME)
    placement = known(first).place(again, source=None, arrival="load")
    assert placement.node_id == first.id
    assert placement.merge == Merge(first.id, again.id, "reload", HOME)


def test_exact_mode_keeps_another_load_as_a_state():
    first, again = look(PAGE, HOME), look(AD + PAGE, HOME)
    assert known(first, mode="exact").place(again, source=None, arrival="load").node_id == again.id


def test_elements_that_differ_between_two_loads_make_no_in_page_state():
    slides = [look(f"{PAGE}<div>{'<i>x</i>' * n}</div>", HOME) for n in (1, 2, 3)]
    found = known(slides[0])
    found.learn(slides[0], slides[2])
    placement = found.place(slides[1], source=slides[0], arrival="in_page")
    assert placement.merge == Merge(slides[0].id, slides[1].id, "volatile", HOME)


def test_elements_noted_as_volatile_make_no_state():
    still, moved = look(PAGE, HOME), look(f"{PAGE}<i></i>", HOME)
    found = known(still)
    found.note_noise(HOME, noise_between(still, moved))
    assert found.place(moved, source=still, arrival="in_page").merge.reason == "volatile"


def bars(count, page=PAGE):
    return look(f"{page}<p>{'<i>|</i>' * count}</p>", HOME)


def test_growing_elements_make_no_state_at_a_new_size():
    found = known(bars(2))
    found.learn(bars(2), bars(5))
    assert found.place(bars(8), source=bars(2), arrival="in_page").merge.reason == "volatile"


@pytest.mark.parametrize("meanwhile", [1, 5, 6])
def test_closing_a_menu_leads_back_to_the_page_despite_growing_elements(meanwhile):
    found, menu = known(bars(4)), bars(4, MENU)
    found.learn(bars(4), bars(2))
    opened = found.place(menu, source=bars(4), arrival="in_page")
    assert opened.merge is None
    found.add(menu, opened, "in_page")
    assert found.place(bars(meanwhile), source=menu, arrival="in_page").node_id == bars(4).id


def test_an_opened_picture_is_a_state_of_a_page_with_growing_elements():
    opened = look(f"{PAGE}<p>{'<i>|</i>' * 2}</p><div><img></div>", HOME)
    found = known(bars(2))
    found.learn(bars(2), bars(5))
    assert found.place(opened, source=bars(2), arrival="in_page").merge is None


def test_an_open_menu_is_a_state_although_its_elements_are_known_noise():
    first, menu = look(PAGE, HOME), look(MENU, HOME)
    found = known(first)
    found.note_noise(HOME, Noise(noise_between(first, menu).elements))
    assert found.place(menu, source=first, arrival="in_page").merge is None


def test_the_same_menu_opened_in_two_loads_of_a_page_with_advertisements_is_one_state():
    first, again = look(PAGE, HOME), look(AD + PAGE, HOME)
    menu, menu_again = look(MENU, HOME), look(AD + MENU, HOME)
    found = known(first)
    opened = found.place(menu, source=first, arrival="in_page")
    assert opened.merge is None
    found.add(menu, opened, "in_page")
    found.place(again, source=None, arrival="load")
    placement = found.place(
        menu_again, source=first, arrival="in_page", changed=feature_change(features(again), features(menu_again))
    )
    assert placement.merge == Merge(menu.id, menu_again.id, "same_change", HOME)


def test_two_tabs_of_a_page_with_noise_stay_two_states():
    panels = "<h1>T</h1><p {}>One thing</p><div {}><p>Other</p></div>"
    tabs = [look(panels.format(*hidden), HOME) for hidden in (("", "hidden"), ("hidden", ""))]
    found = known(tabs[0])
    found.learn(tabs[0], look(f"{AD}<h1>T</h1><p>One thing</p>", HOME))
    assert found.place(tabs[1], source=tabs[0], arrival="in_page").merge is None


def test_a_page_matches_a_state_when_it_shows_the_features_that_distinguish_it():
    first, menu = look(PAGE, HOME), look(MENU, HOME)
    found = known(first)
    found.add(menu, found.place(menu, source=first, arrival="in_page"), "in_page")
    again, menu_again = look(AD + PAGE, HOME), look(AD + MENU, HOME)
    assert found.matches(again, first.id, arrival="load")
    assert found.matches(menu_again, menu.id, arrival="in_page")
    assert not found.matches(again, menu.id, arrival="in_page")
    assert not found.matches(look(PAGE, f"{HOME}other"), first.id, arrival="load")
    assert not known(first, mode="exact").matches(again, first.id, arrival="load")


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_noise_makes_no_further_states_in_any_sequence_of_loads(kind):
    found = Walk(noise_pages((kind,)), depth=6).run()
    assert sorted(path.partition("?")[0] for path in found.paths()) == sorted({"/", "/about", f"/{kind.name}"})


def test_urls_that_differ_in_a_known_token_only_are_one_page():
    one, other = (look(PAGE, f"{HOME}a?token={random_hex(n)}") for n in (1, 2))
    merge = known(one).place(other, source=None, arrival="load").merge
    assert merge == Merge(one.id, other.id, "volatile_parameters", other.url)


def test_a_link_with_another_token_counts_as_a_known_page_once_two_loads_showed_one():
    one, other, third = (f"{HOME}a?token={random_hex(n)}" for n in (1, 2, 3))
    found = known(first := look(PAGE, one))
    assert (found.loaded_state(one), found.loaded_state(third)) == (first.id, None)
    found.place(look(PAGE, other), source=None, arrival="load")
    assert found.loaded_state(third) == first.id
    assert found.link_key(one) == found.link_key(third)


def test_tokens_that_lead_to_different_pages_are_no_longer_volatile():
    one, other = f"{HOME}share?token={random_hex(1)}", f"{HOME}share?token={random_hex(2)}"
    found = known(look("<h1>Mine</h1>", one))
    table = look(f"<table>{'<tr><td>x</td></tr>' * 9}</table>", other)
    assert found.place(table, source=None, arrival="load").merge is None
    assert found.url_key(one) != found.url_key(other)


def test_pages_of_one_template_are_not_merged_because_of_a_parameter_name():
    talk = "<title>{0}</title><h1>{0}</h1><p>Everything about {0}</p><a href='/speaker/{0}'>Who speaks of {0}</a>"
    one, other = (look(talk.format(what), f"{HOME}talk?session_id={n}") for n, what in ((101, "bees"), (102, "wasps")))
    assert one.structure == other.structure
    found = known(one)
    assert found.url_key(one.url) == found.url_key(other.url)
    assert found.place(other, source=None, arrival="load").merge is None
    assert found.url_key(one.url) != found.url_key(other.url)


def test_sort_orders_without_effect_are_one_page():
    body = "<h1>List</h1><a href='/l?sort=name'>Name</a><a href='/l?sort=price'>Price</a><p>One item</p>"
    first, sorted_ = look(body, f"{HOME}l"), look(body, f"{HOME}l?sort=name")
    assert known(first).place(sorted_, source=None, arrival="load").merge.reason == "same_content"


FOLDER = "<title>Docs</title><h1>Docs</h1><a href='/docs/a'>A</a><a href='/'>Home</a><p>All about it</p>"


@pytest.mark.parametrize(
    ("path", "again"),
    [
        ("docs", "docs/"),
        ("docs", "docs/index.html"),
        ("docs/", "docs//index.php"),
        ("docs", "docs.html"),
    ],
)
def test_a_folder_is_one_page_however_it_is_written(path, again):
    first, second = look(FOLDER, HOME + path), look(FOLDER, HOME + again)
    found = known(first)
    assert found.place(second, source=None, arrival="load").merge == Merge(
        first.id, second.id, "same_content", second.url
    )
    assert found.loaded_state(second.url) == first.id


@pytest.mark.parametrize(
    ("path", "again", "other"),
    [
        ("guide", "guide/a", FOLDER),
        ("links", "links/", FOLDER.replace("/docs/a", "/docs/b")),
        ("texts", "texts/", FOLDER.replace("All", "Nothing")),
    ],
)
def test_pages_below_each_other_stay_apart(path, again, other):
    found = known(look(FOLDER, HOME + path))
    assert found.place(look(other, HOME + again), source=None, arrival="load").merge is None


LAMP = "<title>Lamp</title><h1>Lamp</h1><a href='/'>Home</a><p>For the desk</p>"


def named(path, canonical, html=LAMP):
    return replace(look(html, HOME + path), canonical=HOME + canonical if canonical is not None else "")


@pytest.mark.parametrize(
    ("path", "again", "canonical"),
    [
        ("lamp", "sale/lamp", "lamp"),
        ("sale/lamp", "lamp", "lamp"),
        ("lamp", "lamp?from=17", "lamp"),
        ("lamp?from=17", "lamp?from=18", "lamp"),
        ("p/17", "p/17/lamp-for-desks", "p/17/lamp-for-desks"),
    ],
)
def test_equal_pages_that_name_one_address_as_theirs_are_one_state(path, again, canonical):
    first, second = named(path, canonical), named(again, canonical)
    found = known(first)
    resumed = recogniser()
    resumed.load_checkpoint(json.loads(json.dumps(found.to_checkpoint())))
    for each in (found, resumed):
        assert each.place(second, source=None, arrival="load").merge == Merge(
            first.id, second.id, "same_content", second.url
        )


@pytest.mark.parametrize(
    ("path", "again", "canonical", "html"),
    [
        ("lamp", "sale/lamp", None, LAMP),
        ("a", "b", "", LAMP),  # the start page on all pages
        ("photo/1", "photo/2", "photos", LAMP),
        ("lamp", "chair", "lamp", LAMP.replace("Lamp", "Chair")),
        ("lamp", "lamp?page=2", "lamp", LAMP.replace("desk", "wall")),
        ("lamp", "chair", "lamp", LAMP.replace("'/'", "'/next'")),
        ("lamp", "chair", "lamp", LAMP.replace("<p>", "<p><b></b>")),
    ],
)
def test_a_canonical_address_that_lies_merges_nothing(path, again, canonical, html):
    found = known(named(path, canonical))
    assert found.place(named(again, canonical, html), source=None, arrival="load").merge is None


CONTENTS = "<h1>Wiki</h1><a href='{0}#news'>News</a><a href='/?id=start'>Start</a><p>Welcome</p>"


def test_a_page_with_links_to_its_own_parts_is_one_page_at_two_urls():
    start, again = look(CONTENTS.format("/"), HOME), look(CONTENTS.format("/?id=start"), f"{HOME}?id=start")
    found = known(start)
    assert found.loaded_state(again.url) is None
    assert found.place(again, source=None, arrival="load").merge.reason == "same_content"
    assert found.loaded_state(again.url) == start.id
    resumed = recogniser()
    resumed.load_checkpoint(json.loads(json.dumps(found.to_checkpoint())))
    assert resumed.loaded_state(again.url) == start.id


@pytest.mark.parametrize(
    "links", [("/#news", "/?id=start#old"), ("/#/orders", "/?id=start#/orders"), ("/#!a", "/?id=start#!a")]
)
def test_pages_whose_own_links_lead_to_other_parts_or_to_routes_stay_apart(links):
    first, second = (
        look(f"<h1>Wiki</h1><a href='{link}'>News</a>", HOME + url)
        for link, url in zip(links, ("", "?id=start"), strict=True)
    )
    assert known(first).place(second, source=None, arrival="load").merge is None


@pytest.mark.parametrize("urls", [("p/1", "p/2"), ("p?id=1", "p?id=2")])
def test_numbered_pages_stay_apart_although_they_look_the_same(urls):
    first, second = (look("<h1>Out of stock</h1>", HOME + url) for url in urls)
    assert known(first).place(second, source=None, arrival="load").merge is None


def test_pictures_without_texts_stay_apart_by_their_links():
    first, second = (
        look(f"<h1>Picture</h1><a href='/v?name={following}'>Next</a>", f"{HOME}v?name={name}")
        for name, following in (("cat", "dog"), ("dog", "cow"))
    )
    assert known(first).place(second, source=None, arrival="load").merge is None


# ---- properties ----------------------------------------------------------------------------------------------------

parts = st.sampled_from(
    ["<p>a</p>", "<p>b</p>", "<i></i>", "<a href=/x>x</a>", "<div><p>c</p></div>", "<button>B</button>"]
)
bodies = st.lists(parts, max_size=5).map("".join)
paths = st.sampled_from(["", "a", "a?x=1", "a?token=9f86d081884c7d659a2f", "b/17", "b/18?sort=name"])
steps = st.lists(st.tuples(bodies, paths, st.sampled_from(["load", "in_page"])), max_size=12)


def follow(found, steps, known=None):
    """Place and add snapshots as the explorer does; each is found from the one before."""
    states, answers, source = dict(known or {}), [], None
    for body, path, arrival in steps:
        seen = look(body, HOME + path)
        placement = found.place(seen, source=source, arrival=arrival)
        if placement.merge is None and placement.node_id not in states:
            states[seen.id] = seen
            found.add(seen, placement, arrival)
        answers.append(placement)
        source = states[placement.node_id]
    return states, answers


@given(steps)
def test_exact_mode_never_merges(steps):
    states, answers = follow(recogniser("exact"), steps)
    assert all(answer.merge is None for answer in answers)
    assert set(states) == {look(body, HOME + path).id for body, path, _ in steps}


@given(steps)
def test_a_snapshot_is_placed_at_the_same_state_again(steps):
    found = recogniser()
    states, answers = follow(found, steps)
    for (body, path, _), answer in zip(steps, answers, strict=True):
        if answer.merge is None:
            assert found.place(look(body, HOME + path), source=None, arrival="load") == answer
        assert answer.node_id in states


@given(steps)
def test_the_same_calls_give_the_same_placements(steps):
    assert follow(recogniser(), steps)[1] == follow(recogniser(), steps)[1]


@given(steps, steps)
def test_a_checkpoint_restores_the_recogniser(before, after):
    one, other = recogniser(), recogniser()
    states, _ = follow(one, before)
    other.load_checkpoint(json.loads(json.dumps(one.to_checkpoint())))
    assert other.to_checkpoint() == one.to_checkpoint()
    assert follow(one, after, states) == follow(other, after, states)
