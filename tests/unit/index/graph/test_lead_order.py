"""The order in which leads get what not all of them can have."""

from waygraph.index.graph import Action, Lead, lead_id
from waygraph.index.graph.lead_order import kinds_first


def lead(path: str, refusal: str = "") -> Lead:
    url = f"http://s{path}"
    return Lead(lead_id(url), url, (path,), "", "", "home", Action("click", target=url), 1, refusal)


def order(*paths: str) -> list[str]:
    return [each.names[0] for each in kinds_first(map(lead, paths))]


def test_the_first_of_each_kind_comes_before_the_second_of_any():
    records = [f"/users/{number}" for number in range(5)]
    found = order(*records, "/reports/locked", "/reports/aging", "/account")
    assert set(found[:3]) == {"/users/0", "/reports/locked", "/account"}
    assert found[3:5] == ["/users/1", "/reports/aging"]
    assert found[5:] == ["/users/2", "/users/3", "/users/4"]


def test_leads_that_nobody_is_led_to_are_left_out():
    assert [each.names[0] for each in kinds_first([lead("/logout", "hazard"), lead("/a")])] == ["/a"]
