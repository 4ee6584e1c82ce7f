"""Which elements does the explorer leave alone, and why?"""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from index.graph import Action, Box
from pipeline.browser.snapshot import Candidate, Snapshot
from pipeline.explore.blocklist import BlockList
from pipeline.explore.difference import shows_more, split_candidates
from pipeline.explore.hazard import Covered, Disabled, Forms, Hazards
from pipeline.explore.robots import Robots
from pipeline.explore.scope import Scope
from waygraph.errors import InvalidInput


def candidate(name="Go", role="button", target="", **details):
    known = {"kind": "click", "xpath": "/html[1]/body[1]/a[1]"}
    known.update({key: details.pop(key) for key in ("kind", "xpath") if key in details})
    action = Action(**known, role=role, name=name, target=target)
    values = {"tag": "a", "disabled": False, "submits": "", "download": False, **details}
    return Candidate(action, box=Box(0, 0, 1, 1), **values)


def snapshot(*candidates):
    return Snapshot(
        "id",
        "http://x/",
        "http://x/",
        "",
        "text/html",
        200,
        (),
        candidates,
        (),
        capped=False,
        opened=0,
    )


SEEN = snapshot()


def reason(policy, *arguments, **details):
    refusal = policy.refuse(candidate(*arguments, **details), SEEN)
    return refusal.reason if refusal else None


@pytest.mark.parametrize(
    "name",
    [
        "Delete product", "Log out", "Sign out", "Logout", "Unsubscribe", "Add to cart", "Buy now", "Place your order",
        "Löschen", "Abmelden", "Supprimer", "Se déconnecter", "Eliminar", "Cerrar sesión", "Excluir", "Elimina",
        "Verwijderen", "Usuń", "Удалить", "\u00c7\u0131k\u0131\u015f yap", "削除", "退出登录", "로그아웃",
    ],
)  # fmt: skip
def test_names_that_change_something_are_hazards_on_links_and_buttons(name):
    assert reason(Hazards(), name, "button") == "hazard"
    assert reason(Hazards(), name, "link", "http://x/y") == "hazard"


@pytest.mark.parametrize("name", ["Save changes", "Submit", "Send message", "Publish", "Order", "Remove", "Confirm"])
def test_some_names_are_hazards_on_buttons_alone(name):
    assert reason(Hazards(), name, "button") == "hazard"
    assert reason(Hazards(), name, "link", "http://x/y") is None
    assert reason(Hazards(), name, "tab") is None


@pytest.mark.parametrize(
    "name",
    ["Orders", "Shipping", "Settings", "Reports", "Deleted items are here?",
     "How do I delete my account?", "Postcards", "Saved searches", "Buyers", "Payments", "Books"],
)  # fmt: skip
def test_names_that_show_something_are_not_hazards(name):
    assert reason(Hazards(), name, "link", "http://x/y") is None
    assert reason(Hazards(), name, "button") is None


def test_a_button_that_begins_with_a_verb_is_left_alone_where_a_link_would_be_a_page():
    for name in ("Order history", "Checkout help"):
        assert reason(Hazards(), name, "link", "http://x/y") is None
        assert reason(Hazards(), name, "button") == "hazard"


@pytest.mark.parametrize(
    "target", ["http://x/logout", "http://x/user/sign-out", "http://x/p/3/delete", "http://x/?action=delete&id=3"]
)
def test_links_that_act_when_they_are_loaded_are_hazards(target):
    assert reason(Hazards(), "Innocent", "link", target) == "hazard"


@pytest.mark.parametrize("target", ["http://x/deleted-scenes", "http://x/catalogout", "http://x/removers/3"])
def test_link_targets_that_only_resemble_acts_are_not_hazards(target):
    assert reason(Hazards(), "Innocent", "link", target) is None


def test_hovering_is_never_a_hazard():
    assert reason(Hazards(), "Delete", kind="hover") is None


def test_forms_are_not_submitted_but_dialog_forms_may_be_closed():
    assert reason(Forms(), submits="post") == "form_post"
    assert reason(Forms(), submits="get") == "form_get"
    assert reason(Forms(), submits="dialog") is None
    assert reason(Forms()) is None


def test_disabled_elements_are_left_alone():
    assert reason(Disabled(), disabled=True) == "disabled"


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        ("http://shop:8000/x", None),
        ("http://SHOP:8000/x", None),
        ("http://shop/x", "external"),
        ("http://shop:8001/x", "external"),
        ("http://www.shop:8000/x", "external"),
        ("http://shop:8000.evil.example/", "external"),
        ("mailto:a@b", "scheme"),
        ("file:///etc/passwd", "scheme"),
        ("javascript:void(0)", None),
        ("", None),
    ],
)
def test_scope_is_the_exact_host_and_port(target, expected):
    assert reason(Scope("shop:8000"), "Link", "link", target) == expected


def test_download_links_are_left_alone():
    assert reason(Scope("shop"), "File", "link", "http://shop/f.zip", download=True) == "download"


def test_robots_rules_for_us_and_for_everybody_are_obeyed():
    robots = Robots("User-agent: waygraph\nDisallow: /private\n\nUser-agent: *\nDisallow: /")
    assert reason(robots, "a", "link", "http://x/private/1") == "robots"
    assert reason(robots, "a", "link", "http://x/open") is None
    assert reason(Robots("User-agent: *\nDisallow: /"), "a", "link", "http://x/open") == "robots"
    assert reason(robots, "a", "button") is None


RULES = """
sites:
  - host: "*.example"
    block:
      - {name: comparing, text: compare, href: /compare/}
  - host: other
    block:
      - {name: everything, role: "."}
"""


def test_block_rules_match_when_all_their_expressions_do(tmp_path):
    path = tmp_path / "rules.yaml"
    path.write_text(RULES)
    rules = BlockList.read(path, "shop.example")
    assert reason(rules, "Compare prices", "link", "http://x/compare/3") == "rule"
    assert reason(rules, "Compare prices", "link", "http://x/other") is None
    assert reason(rules, "Other", "link", "http://x/compare/3") is None


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("sites: [", "not YAML in line 1"),
        ("sites:\n  - host: x\n   block: []", "not YAML in line 3"),
        ("sites: 3", "wrong at sites, line 1"),
        ("- 1", "wrong at its top"),
        ("sites:\n  - host: x\n    block:\n      - {name: n, text: '('}", "line 4: '\\('"),
        ("sites:\n  - host: x\n    block:\n      - {name: n, text: '(a)(?=b)'}", "line 4: .*Look-around"),
        ("sites:\n  - host: x\n    blok: []", "wrong at sites.0.blok, line 3"),
        ("sites:\n  - host: x\n    allow:\n      - name: everything", "line 4: the rule 'everything' has none"),
        ("sites:\n  - block: []", "wrong at sites.0.host, line 2: Field required"),
        ("\x00", "not YAML"),
    ],
)
def test_malformed_rules_are_one_clear_error_with_its_line(tmp_path, text, says):
    path = tmp_path / "rules.yaml"
    path.write_text(text)
    with pytest.raises(InvalidInput, match=f"rules file .*{says}") as raised:
        BlockList.read(path, "x")
    assert "\n" not in raised.value.message
    assert raised.value.hint


def test_a_rules_file_that_is_no_text_or_nested_without_end_is_one_clear_error(tmp_path):
    path = tmp_path / "rules.yaml"
    for content in (b"\xff\xfe\x00", b"[" * 5_000, b"x" * (2 << 20)):
        path.write_bytes(content)
        with pytest.raises(InvalidInput, match="rules file"):
            BlockList.read(path, "x")


def test_an_expression_that_backtracks_without_end_hangs_nothing(tmp_path):
    path = tmp_path / "rules.yaml"
    path.write_text("sites:\n  - host: x\n    block:\n      - {name: slow, text: '(a+)+$'}")
    rules = BlockList.read(path, "x")
    assert reason(rules, "a" * 300 + "!") is None
    assert reason(rules, "a" * 300) == "rule"


ALLOWED = """
sites:
  - host: shop
    allow:
      - {name: demo data, text: ^delete demo data$}
      - {name: archive, href: "/archive/.*/delete$"}
    block:
      - {name: never, text: never}
"""


def test_allow_rules_spare_what_the_lexicon_leaves_alone_and_nothing_else(tmp_path):
    path = tmp_path / "rules.yaml"
    path.write_text(ALLOWED)
    rules = BlockList.read(path, "shop")
    hazards = Hazards(rules)
    assert reason(hazards, "Delete demo data") is None
    assert reason(hazards, "Delete all data") == "hazard"
    assert reason(hazards, "Innocent", "link", "http://shop/archive/3/delete") is None
    assert hazards.refuse_url("http://shop/archive/3/delete") is None
    assert hazards.refuse_url("http://shop/orders/3/delete").reason == "hazard"
    assert reason(rules, "Never delete demo data") == "rule"
    assert reason(Hazards(BlockList.read(path, "other")), "Delete demo data") == "hazard"


def test_a_missing_rules_file_is_one_clear_error():
    with pytest.raises(InvalidInput, match="cannot be read"):
        BlockList.read(Path("/no/such/file"), "x")


elements = st.builds(
    candidate,
    name=st.sampled_from("abc"),
    role=st.sampled_from(["link", "button"]),
    target=st.sampled_from(["", "http://x/1", "http://x/2"]),
    xpath=st.sampled_from(["/a[1]", "/a[2]", "/a[3]"]),
)


@given(st.lists(elements), st.lists(elements), st.sampled_from(["element", "paper", "off"]))
def test_differencing_splits_every_element_to_one_side_and_keeps_order(state, parent, mode):
    new, old = split_candidates(snapshot(*state), snapshot(*parent), mode)
    assert sorted(map(id, [*new, *old])) == sorted(map(id, state))
    assert [c for c in state if any(c is n for n in new)] == new
    if mode == "off":
        assert old == []


def test_the_papers_difference_looks_at_the_place_alone_and_ours_at_the_element():
    state, parent = snapshot(candidate("New", "link", "http://x/2")), snapshot(candidate("Old", "link", "http://x/1"))
    assert split_candidates(state, parent, "paper")[0] == []
    assert split_candidates(state, parent, "element")[0] == list(state.candidates)
    assert split_candidates(state, None, "paper")[0] == list(state.candidates)


def test_what_is_covered_in_the_parent_is_new_where_it_is_not():
    link, covered = candidate("Home"), candidate("Home", covered=True)
    assert split_candidates(snapshot(link), snapshot(covered), "element") == ([link], [])
    assert split_candidates(snapshot(covered), snapshot(link), "element") == ([], [covered])
    assert Covered().refuse(covered, snapshot()).reason == "covered"
    assert Covered().refuse(link, snapshot()) is None


def test_what_made_a_state_is_tried_once_more_when_the_state_shows_something():
    button, more = candidate("Next"), candidate("Slide 2", "link", "http://x/2", xpath="/html[1]/body[1]/a[2]")
    first, second = snapshot(button), snapshot(button, more)
    assert split_candidates(second, first, "element", button.action) == ([button, more], [])
    assert split_candidates(first, first, "element", button.action) == ([], [button])
    assert split_candidates(second, first, "element", more.action) == ([more], [button])


@pytest.mark.parametrize("difference", [{"role": "tab"}, {"kind": "hover"}])
def test_choices_and_hovers_are_not_tried_once_more(difference):
    again = candidate("Next", **difference)
    more = candidate("Slide 2", "link", "http://x/2", xpath="/html[1]/body[1]/a[2]")
    assert split_candidates(snapshot(again, more), snapshot(again), "element", again.action) == ([more], [again])


def test_a_state_shows_more_by_what_its_elements_are_and_not_by_where():
    here, there = candidate("Go"), candidate("Go", xpath="/html[1]/body[1]/a[7]")
    assert not shows_more(snapshot(here, there), [snapshot(here)])
    assert shows_more(snapshot(here, candidate("Stay")), [snapshot(here), snapshot(there)])
