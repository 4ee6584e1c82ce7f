"""Trap detection: a trap costs a few states, and everything that only resembles a trap is found completely."""

import json
from collections import Counter
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.sites.static_pages import BASE, Walk, look
from tests.sites.traps import (
    ENDLESS,
    IGNORED_RESTS,
    LARGE_CATALOGUE,
    LEGITIMATE,
    NUMBERED_CATALOGUE,
    REST,
    TOOL,
    TREE,
    Area,
    html,
    trap_pages,
    trap_truth,
)
from waygraph.pipeline.explore.identity import TrapDetector
from waygraph.pipeline.explore.identity.gain import PageGroup, StructureSketch, pack_numbers, unpack_numbers
from waygraph.pipeline.explore.identity.url_groups import group_of


def judged(areas, **options):
    """Return the walk, the true states that it missed, and the number of states that it found in excess."""
    found = Walk(trap_pages(areas), **options).run()
    truth = trap_truth(areas, scripts=False)
    names = Counter()
    for state in found.states.values():
        said = " | ".join((state.title, *(segment.text for segment in state.segments)))
        target = state.url.removeprefix(BASE)
        names[next((name for name, shown in truth.states.items() if shown.is_like(target, said)), None)] += 1
    return (
        found,
        sorted(truth.states.keys() - names.keys()),
        names[None] + sum(n - 1 for key, n in names.items() if key),
    )


@pytest.mark.parametrize("area", ENDLESS, ids=lambda area: area.name)
def test_a_trap_costs_at_most_ten_states_and_the_rest_of_the_site_is_found(area):
    _, missing, extra = judged((area,), depth=20)
    assert missing == []
    assert extra + 1 <= 10


@pytest.mark.parametrize("area", IGNORED_RESTS, ids=lambda area: area.name)
def test_a_server_that_ignores_the_rest_of_a_path_costs_no_state(area):
    _, missing, extra = judged((area, TREE), depth=12)
    assert (missing, extra) == ([], 0)


def test_all_traps_and_legitimate_areas_on_one_site():
    _, missing, extra = judged((*ENDLESS, *LEGITIMATE), depth=14)
    assert missing == []
    assert extra <= 9 * len(ENDLESS)


@pytest.mark.parametrize(
    "area", [*LEGITIMATE, LARGE_CATALOGUE, NUMBERED_CATALOGUE], ids=lambda area: f"{area.name} {len(area.real)}"
)
def test_legitimate_area_that_resembles_a_trap_is_found_completely(area):
    found, missing, extra = judged((area,), depth=area.depth)
    assert (missing, extra) == ([], 0)
    assert found.refused == {}


@pytest.mark.parametrize("resumes", [False, True])
def test_the_tabs_of_a_tool_that_every_page_links_to_are_visited_once_each(resumes):
    found = Walk(trap_pages((TOOL,)), depth=TOOL.depth, resumes=resumes).run()
    tabs = Counter(path.partition("&tab=")[2] for path in found.paths("/tool"))
    assert (tabs["upload"], tabs["search"]) == (1, 1)
    assert tabs.total() <= 10
    assert any("/tool?do=media" in why for why in found.refused.values())


def test_an_exhausted_group_is_visited_for_few_choices_only():
    traps = TrapDetector(5, str)
    keys = ("view", "order", "group", "colour", "size")
    links = "".join(f"<a href='/p?{key}=other'>{key}</a>" for key in keys)
    for name in ("a", "b", "c", "d", "e", "f", "g"):
        traps.add_state(
            look(f"<h1>P</h1>{links}<a href='/p?name={name}x'>N</a>", f"{BASE}/p?name={name}"), None, "load"
        )
    assert traps.refuse_link(f"{BASE}/p?name=z") is not None
    visited = []
    for key in keys:
        if traps.refuse_link(url := f"{BASE}/p?{key}=other") is None:
            visited.append(key)
            traps.add_state(look(f"<h1>P</h1>{links}", url), None, "load")
            assert traps.refuse_link(f"{url}&name=z") is not None
    assert visited == ["view", "order", "group"]


def test_without_trap_detection_a_calendar_has_no_end():
    calendar = next(area for area in ENDLESS if area.name == "calendar")
    assert len(Walk(trap_pages((calendar,)), depth=6, budget=0).run().states) > 100


def test_a_refusal_names_the_group_and_the_reason():
    calendar = next(area for area in ENDLESS if area.name == "calendar")
    refused = Walk(trap_pages((calendar,)), depth=6).run().refused
    assert any(
        "http://still.example/calendar/#" in why and "led only to more of the same group" in why
        for why in refused.values()
    )


def test_links_back_from_a_log_in_page_do_not_keep_a_calendar_going():
    calendar = next(area for area in ENDLESS if area.name == "calendar").pages()["*"]

    def with_log_in(request):
        page = calendar(request)
        return (
            page.replace("</nav>", f"<a href='/login?next={request.target}'>Log in</a></nav>")
            if isinstance(page, str)
            else page
        )

    area = Area("calendar", "/calendar", lambda: {"/login": html("Log in", "<p>Please do.</p>"), "*": with_log_in}, {})
    found = Walk(trap_pages((area,)), depth=14).run()
    assert len(found.paths("/calendar")) <= 10


def test_products_with_the_filters_in_their_urls_do_not_keep_the_filters_going():
    shelf = dict(next(area for area in ENDLESS if area.name == "facets").pages())
    plain = shelf["/shelf"]

    def carrying(request):
        query = request.target.partition("?")[2]
        page = plain(request)
        for good in [path for path in shelf if path != "/shelf"] if query else ():
            page = page.replace(f"'{good}'", f"'{good}?{query}'")
        return page

    area = Area("facets", "/shelf", lambda: {**shelf, "/shelf": carrying}, {})
    found = Walk(trap_pages((area,)), depth=8).run()
    assert len(found.paths("/shelf")) <= 10
    assert len(found.paths("/goods/")) == 10


@pytest.mark.parametrize(
    ("path", "rule"),
    [
        ("/a/a/a", "/a is repeated 3 times in a row"),
        ("/x/a/b/a/b/a/b", "/a/b is repeated 3 times in a row"),
        (f"/{'a' * 2_000}", "characters"),
    ],
)
def test_implausible_urls_are_refused_before_any_visit(path, rule):
    assert rule in TrapDetector(5, str).refuse_link(BASE + path).detail


@pytest.mark.parametrize("path", ["/a/b/a/b", "/11/11/11", "/a/x/a/y/a/z"])
def test_plausible_urls_are_not_refused(path):
    assert TrapDetector(5, str).refuse_link(BASE + path) is None


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("/p/1", "/p/2"), ("/p", "/p?sort=name"), ("/c/2024/05", "/c/2024/05/12"), ("/a/b/a/b", "/a/b"),
        ("/item-17.html", "/item-8.html"), ("/p?page=2", "/p?page=3"), ("/#/n/5", "/#/n/6"),
    ],
)  # fmt: skip
def test_urls_of_one_group(one, other):
    assert group_of(BASE + one) == group_of(BASE + other)


@pytest.mark.parametrize(
    ("one", "other"), [("/p/1", "/q/1"), ("/user/1", "/user/1/orders"), ("/i?page=a", "/i?page=b")]
)
def test_urls_of_two_groups(one, other):
    assert group_of(BASE + one) != group_of(BASE + other)


def counter(n, url=f"{BASE}/count"):
    return look(f"<h1>Count</h1><p>{n}</p>{'<b>|</b>' * n}<button>Count to {n + 1}</button>", url)


def test_a_counter_that_stays_at_its_url_is_no_longer_acted_on():
    traps = TrapDetector(5, str)
    states = [counter(n) for n in range(30)]
    traps.add_state(states[0], None, "load")
    for last, state in pairwise(states):
        traps.add_state(state, last, "in_page")
        assert traps.refuse_snapshot(state, last, "in_page") is None
        if traps.refuse_state(state.id):
            break
    assert traps.refuse_state(states[0].id) is None
    assert states.index(state) <= 8


@pytest.mark.parametrize("resumed", [False, True])
def test_a_state_with_much_new_text_is_acted_on_although_its_group_is_exhausted(resumed):
    traps = TrapDetector(5, str)
    states = [counter(n) for n in range(30)]
    traps.add_state(states[0], None, "load")
    says = "".join(f"<p>{word}</p>" for word in ("Language", "Currency", "Units", "Timezone", "Sounds", "Shortcuts"))
    settings = look(f"<h1>Settings</h1>{says}<button>Close</button>", states[0].url)
    traps.add_state(settings, states[0], "in_page")
    if resumed:
        checkpoint, traps = json.loads(json.dumps(traps.to_checkpoint())), TrapDetector(5, str)
        traps.load_checkpoint(checkpoint)
    for last, state in pairwise(states):
        traps.add_state(state, last, "in_page")
    assert traps.refuse_state(states[-1].id) is not None
    assert traps.refuse_state(settings.id) is None


def test_a_counter_in_the_fragment_is_no_longer_followed():
    traps = TrapDetector(5, str)
    last = None
    for n in range(30):
        state = counter(n, f"{BASE}/numbers#/n/{n}")
        if traps.refuse_snapshot(state, last, "in_page"):
            break
        traps.add_state(state, last, "in_page")
        last = state
    assert n <= 8


def test_dialogs_of_one_page_are_all_acted_on():
    traps = TrapDetector(5, str)
    page = look("<h1>List</h1>" + "".join(f"<button>Row {n}</button>" for n in range(30)), BASE)
    traps.add_state(page, None, "load")
    for n in range(30):
        dialog = look(f"<h1>List</h1>{'<p></p>' * n}<dialog><p>Sure?</p><button>Yes {n}</button></dialog>", BASE)
        traps.add_state(dialog, page, "in_page")
        assert traps.refuse_state(dialog.id) is None


def test_states_are_found_in_the_same_order_when_the_run_is_resumed_after_each():
    areas = (*ENDLESS, *LEGITIMATE[1:3])
    one, other = (Walk(trap_pages(areas), depth=6, resumes=resumes).run() for resumes in (False, True))
    assert list(one.states) == list(other.states)
    assert one.refused == other.refused
    assert one.merges == other.merges


def test_a_checkpoint_is_plain_json_and_small():
    found = Walk(trap_pages((LARGE_CATALOGUE,)), depth=12).run()
    size = len(json.dumps([found.recogniser.to_checkpoint(), found.traps.to_checkpoint()]))
    assert size / len(found.states) < 400


def test_the_fixture_has_no_edges_from_other_areas():
    assert {source for source, _, _ in REST.edges} <= REST.states.keys()


# ---- properties ----------------------------------------------------------------------------------------------------


@given(st.sets(st.integers(0, 2**32 - 1)))
def test_packed_numbers_are_unpacked(numbers):
    assert unpack_numbers(pack_numbers(numbers)) == sorted(numbers)


@given(st.lists(st.integers(0, 40), min_size=1, max_size=30), st.integers(1, 6))
def test_an_exhausted_group_stays_exhausted(pages, budget):
    traps = TrapDetector(budget, str)
    was = False
    for n in pages:
        page = look(f"<h1>Page</h1><a href='/p/{n + 1}'>Next</a>", f"{BASE}/p/{n}")
        traps.add_state(page, None, "load")
        now = traps.refuse_link(f"{BASE}/p/1000") is not None
        assert now >= was
        was = now


def test_sketches_separate_kinds_of_structures():
    rows = [StructureSketch.of(look(f"<table>{'<tr><td>x</td></tr>' * n}</table>", BASE)) for n in (30, 40, 300)]
    text = StructureSketch.of(look("<p>x</p>" * 40, BASE))
    assert rows[0].is_like(rows[1])
    assert rows[0].is_like(rows[2])
    assert not rows[0].is_like(text)


def test_a_group_is_read_back_from_json():
    group = PageGroup(5, 3)
    group.add_visit(look("<p>Some words here</p>", BASE))
    assert PageGroup.from_json(json.loads(json.dumps(group.to_json()))) == group
