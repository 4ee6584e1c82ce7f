"""Expected novelty: kinds of work items, gains of states, and the rounds planned from them."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.function_site import FunctionSite, count_visited
from tests.sites.static_pages import BASE
from tests.sites.static_pages import look as snapshot_of
from tests.unit.pipeline.explore.policies.test_policies import candidate
from waygraph.pipeline.explore.engine.novelty import ItemKind, NoveltyModel, ShownContent, item_kind, places
from waygraph.pipeline.explore.engine.order import BreadthOrder, NoveltyOrder, PendingItem

PAGE = f"{BASE}/tickets"


def link(target, xpath="/html[1]/body[1]/a[1]", name="Go"):
    return candidate(name, "link", target, xpath=xpath)


def kind(element, place="body/a", source=PAGE, depth=0):
    return item_kind(element, place, source, depth)


def test_links_to_records_share_all_kinds_but_their_names():
    one, other = (kind(link(f"{BASE}/tickets/{n}", name=f"Ticket {n}")) for n in (17, 2_345))
    assert one == other


def test_links_to_functions_of_one_folder_share_the_folder():
    mail, backup = (kind(link(f"{BASE}/admin/{n}", name=n)) for n in ("mail", "backup"))
    assert len(set(mail.keys) & set(backup.keys)) == 3  # the folder, the place in all pages, the list of this page


def test_another_query_of_the_page_itself_is_less_likely_to_bring_something_new():
    assert kind(link(f"{PAGE}?sort=name")).prior < kind(link(f"{BASE}/reports")).prior


def test_what_the_pointer_may_show_comes_after_what_a_click_may_show():
    assert kind(candidate(kind="hover")).prior < kind(candidate()).prior


def test_places_leave_out_the_positions_in_lists_and_keep_columns():
    rows = "".join(
        f"<tr><td><a href='/tickets/{n}'>T</a></td><td><a href='/tickets/{n}/edit'>Edit</a></td></tr>" for n in range(5)
    )
    seen = snapshot_of(f"<div><a href='/new'>New</a></div><div><table>{rows}</table></div>", PAGE)
    assert len(set(places(seen))) == 3
    assert min(places(seen)).endswith("div1/a1")


@given(st.lists(st.sampled_from([0.0, 0.2, 1.0]), max_size=20), st.floats(0, 1))
def test_the_expected_gain_lies_between_prior_and_results(gains, prior):
    model, of = NoveltyModel(), ItemKind(prior, 1.0, ((1, 2), (3,)))
    for gain in gains:
        model.learn(of, gain)
    expected = model.expected_gain(of, {})
    assert min([prior, *gains]) - 1e-9 <= expected <= max([prior, *gains]) + 1e-9


def test_the_special_kind_decides_where_it_has_results_and_the_general_one_elsewhere():
    model = NoveltyModel()
    known, unknown = (ItemKind(0.5, 1.0, ((1, path),)) for path in (2, 3))
    for _ in range(9):
        model.learn(known, 0.0)
    model.learn(ItemKind(0.5, 1.0, ((1, 4),)), 1.0)
    assert model.expected_gain(known, {}) < model.expected_gain(unknown, {}) < 0.5


def test_a_page_of_a_new_kind_gains_more_than_another_record():
    shown = ShownContent()
    shown.add(snapshot_of("<h1>Tickets</h1><a href='/tickets/1'>One</a>", PAGE))
    record = "<h1>{0}</h1><form><button>Close</button><button>Assign</button><button>Watch</button></form>"
    first = shown.add(snapshot_of(record.format("Printer"), f"{PAGE}/1"))
    second = shown.add(snapshot_of(record.format("Scanner"), f"{PAGE}/2"))
    third = shown.add(snapshot_of(record.format("Scanner"), f"{PAGE}/3"))
    assert first == 1.0 > second > third == 0.0


def pending(kinds):
    return [
        PendingItem(i // 7, i % 7, link(f"{BASE}/{i}/{k}"), ItemKind(0.1 + k / 10, 1.0, ((k,),)))
        for i, k in enumerate(kinds)
    ]


def order_of(items):
    order = NoveltyOrder(lambda url: url)
    order.begin(snapshot_of("", f"{BASE}/"))
    for item in items:
        order.add(item)
    return order


@given(st.lists(st.integers(0, 4), min_size=1, max_size=120), st.integers(1, 90))
def test_all_items_are_taken_once_in_rounds_by_state_and_element(kinds, room):
    items = pending(kinds)
    order, taken = order_of(items), []
    while part := order.take(1, room):
        places_of_part = [(item.state, item.element) for item in part]
        assert places_of_part == sorted(places_of_part)
        taken += part
    assert sorted(taken, key=lambda i: (i.state, i.element)) == items
    assert order.pending == 0


@given(st.lists(st.integers(0, 4), min_size=30, max_size=120), st.integers(1, 3), st.data())
def test_restored_order_takes_what_the_first_one_would_have_taken(kinds, rounds, data):
    items = pending(kinds)
    order = order_of(items)
    left = {(item.state, item.element): item for item in items}
    for number in range(rounds):
        for item in order.take(1, 30):
            del left[item.state, item.element]
            found = data.draw(st.booleans())
            order.learn(item.kind, snapshot_of(f"<h1>{number}</h1>", item.candidate.action.target) if found else None)
    restored = NoveltyOrder(lambda url: url)
    restored.load_checkpoint(json.loads(json.dumps(order.to_checkpoint())), list(left.values()))
    while (expected := order.take(1, 30)) or restored.pending:
        assert restored.take(1, 30) == expected


def test_a_round_takes_few_of_each_kind_and_links_to_known_pages_last():
    many = [PendingItem(0, i, link(f"{BASE}/t/{i}"), ItemKind(0.6, 1.0, ((100,),))) for i in range(200)]
    few = [PendingItem(1, i, link(f"{BASE}/s/{i}"), ItemKind(0.6, 1.0, ((i,),))) for i in range(10)]
    known = [PendingItem(2, 0, link(f"{BASE}/s/0"), ItemKind(0.9, 1.0, ((101,),)))]
    first = order_of([*many, *few, *known]).take(1, 500)
    assert set(few[1:]) <= set(first)
    assert known[0] in first
    assert sum(item in many for item in first) == len(first) - 10


def links_to_known_pages(states, count):
    """Links of each state to the start page."""
    return [
        PendingItem(s, i, link(f"{BASE}/"), ItemKind(0.9, 1.0, ((200 + s, i),))) for s in states for i in range(count)
    ]


def test_once_nothing_new_is_left_all_links_to_known_pages_form_one_round():
    links = links_to_known_pages(range(40), 3)
    assert order_of(reversed(links)).take(1, 1) == links


def test_a_round_with_the_last_new_elements_visits_few_states_for_links_to_known_pages():
    new = [PendingItem(s, 9, link(f"{BASE}/p/{s}"), ItemKind(0.5, 1.0, ((s,),))) for s in (3, 7)]
    links = links_to_known_pages(range(10), 15)
    first = order_of([*links, *new]).take(1, 500)
    assert set(new) <= set(first)
    assert {item.state for item in first} == {3, 7}
    assert len(first) == 32  # more than `MIN_ROUND`: these states are reached once


def test_a_round_does_what_it_can_on_the_states_that_it_visits_if_there_is_room_for_all_that_is_pending():
    links = [PendingItem(s, 0, link(f"{BASE}/p/{s}"), ItemKind(0.9, 1.0, ((s,),))) for s in range(30)]
    menus = [
        PendingItem(s, i, candidate("Menu", "button", ""), ItemKind(0.1, 1.0, ((50 + s, i),)))
        for s in range(30)
        for i in (1, 2)
    ]
    everything = {(item.state, item.element) for item in (*links, *menus)}
    order = order_of([*links, *menus])
    first = order.take(1, len(everything))
    visited = {item.state for item in first}
    assert len(visited) == 24
    assert {(item.state, item.element) for item in first} == {place for place in everything if place[0] in visited}
    assert len(order_of([*links, *menus]).take(1, len(everything) - 1)) == 24
    left = order.take(1, 500)
    assert {(item.state, item.element) for item in (*first, *left)} == everything
    assert order.pending == 0


def test_a_hover_on_a_link_does_not_count_as_a_visit_of_its_target():
    target = f"{BASE}/reports"
    hover = PendingItem(0, 0, candidate("Reports", "link", target, kind="hover"), ItemKind(0.9, 1.0, ((1,),)))
    click = PendingItem(0, 1, link(target), ItemKind(0.5, 1.0, ((2,),)))
    others = [PendingItem(1, i, link(f"{BASE}/o/{i}"), ItemKind(0.4, 1.0, ((3,),))) for i in range(60)]
    assert click in order_of([hover, click, *others]).take(1, 500)


@given(st.lists(st.integers(0, 4), max_size=60), st.integers(0, 80))
def test_the_expected_gain_of_further_items_changes_nothing(kinds, count):
    order, same = order_of(pending(kinds)), order_of(pending(kinds))
    gain = order.expected_gain(count)
    assert 0 <= gain <= min(count, len(kinds))
    assert order.expected_gain(count + 1) >= gain
    while expected := same.take(1, 30):
        assert order.take(1, 30) == expected
    assert order.expected_gain(count) == 0.0


def test_planned_and_found_items_count_towards_the_expected_gain_and_known_pages_do_not():
    items = [PendingItem(0, i, link(f"{BASE}/p/{i}"), ItemKind(0.5, 1.0, ((i,),))) for i in range(4)]
    order = order_of(items[:2])
    alone = order.expected_gain(10)
    assert order.expected_gain(10, [], items[2:]) == pytest.approx(2 * alone)
    assert order.expected_gain(10, [], [*items[2:], *items[2:]]) == pytest.approx(2 * alone)  # one page, two links
    taken = order.take(1, 500)
    assert order.expected_gain(10) == 0.0
    assert order.expected_gain(10, taken) == pytest.approx(alone)
    assert order.expected_gain(10, [], taken) == 0.0  # links to pages that are planned


def test_wanted_pages_come_first_also_after_a_restart_with_other_wishes():
    wanted = PendingItem(1, 0, link(f"{BASE}/wanted"), ItemKind(0.1, 1.0, ((2,),)))
    order = NoveltyOrder(lambda url: url, [f"{BASE}/wanted"])
    order.begin(snapshot_of("", f"{BASE}/"))
    items = [*pending([3] * 100), wanted]
    for item in items:
        order.add(item)
    restored = NoveltyOrder(lambda url: url, [f"{BASE}/3/3"])
    restored.load_checkpoint(json.loads(json.dumps(order.to_checkpoint())), items)
    assert wanted in order.take(1, 8)
    assert wanted in restored.take(1, 8)
    assert order.pending == restored.pending == 100


@pytest.mark.parametrize("room", [1, 500])
def test_breadth_takes_everything(room):
    order = BreadthOrder()
    items = pending([0, 1, 2])
    for item in items:
        order.add(item)
    assert order.take(1, room) == items
    assert order.pending == 0


def crawled(page, states, checkpoints=False):
    """URLs of a site in the order in which they are visited, page after page of static HTML."""
    order, shown, seen_urls = NoveltyOrder(lambda url: url), [page(f"{BASE}/")], [f"{BASE}/"]
    left, depths = {}, [0]

    def offer(snapshot):
        at, place = places(snapshot), len(shown) - 1
        for number, element in enumerate(snapshot.candidates):
            item = PendingItem(place, number, element, item_kind(element, at[number], snapshot.url, depths[place]))
            left[item.state, item.element] = item
            order.add(item)

    order.begin(shown[0])
    offer(shown[0])
    while len(shown) < states and (round_ := order.take(len(shown), states - len(shown))):
        found = []
        for item in round_:
            del left[item.state, item.element]
            target = item.candidate.action.target
            new = page(target) if target and target not in seen_urls else None
            order.learn(item.kind, new)
            if new is not None:
                found.append((new, depths[item.state] + 1))
                seen_urls.append(target)
        for new, depth in found:
            shown.append(new)
            depths.append(depth)
            offer(new)
        if checkpoints:
            memory = json.loads(json.dumps(order.to_checkpoint()))
            order = NoveltyOrder(lambda url: url)
            order.load_checkpoint(memory, left.values())
    return [url.removeprefix(BASE) for url in seen_urls]


@pytest.mark.parametrize(
    ("style", "records_first"), [("path", True), ("title", False), ("query", True), ("flat", True)]
)
def test_functions_of_an_index_come_before_the_third_record_of_any_function_in_any_style_of_urls(style, records_first):
    site = FunctionSite(style, records_first, size=300)
    found = count_visited(site, crawled(lambda url: snapshot_of(site.page(url.removeprefix(BASE)), url), 170))
    assert found.functions >= 100
    assert found.too_early == 0


def test_a_crawl_that_resumes_after_every_round_visits_the_same_pages():
    def page(url):
        return snapshot_of(FunctionSite("title", size=100).page(url.removeprefix(BASE)), url)

    assert crawled(page, 50, checkpoints=True) == crawled(page, 50)


def test_menus_of_parallel_projects_come_after_the_functions_of_the_site():
    views = [f"view{letter}" for letter in "abcdefgh"]

    def page(url):
        path = url.removeprefix(BASE)
        of = path.split("/")[2] if path.startswith("/projects/") else ""
        links = "".join(f"<li><a href='/projects/{of}/{view}'>{view}</a></li>" for view in views) if of else ""
        tools = "".join(f"<p><a href='/all/{view}'>{view}</a></p>" for view in views)
        projects = "".join(f"<li><a href='/projects/{name}'>{name}</a></li>" for name in ("ann", "bob", "cleo"))
        last = path.rpartition("/")[2]
        form = "".join(f"<div><button>{last} {n}</button></div>" for n in range(4)) if "view" in last else ""
        return snapshot_of(
            f"<h1>{path}</h1><ul>{projects}</ul><ol>{links}</ol><nav>{form}</nav><div>{tools}</div>", url
        )

    visited = crawled(page, 27)
    once = [url for url in visited if url.startswith("/all/") or "/view" in url]
    first = {url.rpartition("/")[2] for url in once[:16] if url.startswith("/projects/")}
    assert len(first) == 8 == sum(url.startswith("/all/") for url in once[:16])


def test_further_states_of_one_page_come_after_pages_unless_they_offer_new_ones():
    tabs = [
        PendingItem(0, i, candidate(f"Tab {i}", "tab"), kind(candidate(f"Tab {i}", "tab"), f"t{i}")) for i in range(9)
    ]
    pages = [PendingItem(1, i, e, kind(e, f"a{i}")) for i, e in enumerate(link(f"{BASE}/p/{i}") for i in range(9))]
    order = order_of([*tabs[3:], *pages])
    for number, tab in enumerate(tabs[:3]):
        order.learn(tab.kind, snapshot_of(f"<p>{number}</p><form>{'<button>x</button>' * number}</form>", PAGE))
    tabs_are_last = order._model.expected_gain(tabs[5].kind, {}), order._model.expected_gain(pages[5].kind, {})
    assert tabs_are_last[0] < tabs_are_last[1]
    menus = order_of([*tabs[3:], *pages])
    for number, tab in enumerate(tabs[:3]):
        menus.learn(tab.kind, snapshot_of(f"<a href='/m/{number}'>x</a><form>{'<p>x</p>' * number}</form>", PAGE))
    assert menus._model.expected_gain(tabs[5].kind, {}) > 2 * tabs_are_last[0]
