"""Policies of the explorer: which elements and documents they refuse, and why."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from waygraph.core.errors import InvalidInput
from waygraph.index.graph import Action, Box
from waygraph.pipeline.browser.page.snapshot import Candidate, Snapshot
from waygraph.pipeline.explore.identity.difference import shows_new_content, split_candidates
from waygraph.pipeline.explore.policies.blocklist import BlockList
from waygraph.pipeline.explore.policies.element_state import CoveredPolicy, DisabledPolicy
from waygraph.pipeline.explore.policies.forms import FormPolicy
from waygraph.pipeline.explore.policies.hazard import HazardPolicy
from waygraph.pipeline.explore.policies.robots_file import RobotsFile
from waygraph.pipeline.explore.policies.scope import Scope


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
    assert reason(HazardPolicy(), name, "button") == "hazard"
    assert reason(HazardPolicy(), name, "link", "http://x/y") == "hazard"


@pytest.mark.parametrize("name", ["Save changes", "Submit", "Send message", "Publish", "Order", "Remove", "Confirm"])
def test_some_names_are_hazards_on_buttons_only(name):
    assert reason(HazardPolicy(), name, "button") == "hazard"
    assert reason(HazardPolicy(), name, "link", "http://x/y") is None
    assert reason(HazardPolicy(), name, "tab") is None


@pytest.mark.parametrize(
    "name",
    ["Orders", "Shipping", "Settings", "Reports", "Deleted items are here?",
     "How do I delete my account?", "Postcards", "Saved searches", "Buyers", "Payments", "Books"],
)  # fmt: skip
def test_names_that_show_something_are_not_hazards(name):
    assert reason(HazardPolicy(), name, "link", "http://x/y") is None
    assert reason(HazardPolicy(), name, "button") is None


def test_a_name_that_begins_with_a_verb_is_a_hazard_on_a_button_and_a_page_on_a_link():
    for name in ("Order history", "Checkout help"):
        assert reason(HazardPolicy(), name, "link", "http://x/y") is None
        assert reason(HazardPolicy(), name, "button") == "hazard"


@pytest.mark.parametrize(
    "target", ["http://x/logout", "http://x/user/sign-out", "http://x/p/3/delete", "http://x/?action=delete&id=3"]
)
def test_link_targets_that_change_data_are_hazards(target):
    assert reason(HazardPolicy(), "Innocent", "link", target) == "hazard"


@pytest.mark.parametrize("target", ["http://x/deleted-scenes", "http://x/catalogout", "http://x/removers/3"])
def test_link_targets_that_only_resemble_hazards_are_followed(target):
    assert reason(HazardPolicy(), "Innocent", "link", target) is None


def test_hovering_is_never_a_hazard():
    assert reason(HazardPolicy(), "Delete", kind="hover") is None


def test_forms_are_not_submitted_but_dialog_forms_may_be_closed():
    assert reason(FormPolicy(), submits="post") == "form_post"
    assert reason(FormPolicy(), submits="get") == "form_get"
    assert reason(FormPolicy(), submits="dialog") is None
    assert reason(FormPolicy()) is None


def test_disabled_elements_are_refused():
    assert reason(DisabledPolicy(), disabled=True) == "disabled"


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


def test_download_links_are_refused():
    assert reason(Scope("shop"), "File", "link", "http://shop/f.zip", download=True) == "download"


def test_robots_rules_for_waygraph_and_for_all_agents_are_obeyed():
    robots = RobotsFile("User-agent: waygraph\nDisallow: /private\n\nUser-agent: *\nDisallow: /")
    assert robots.refuse_url("http://x/private/1").reason == "robots"
    assert robots.refuse_url("http://x/open") is None
    assert RobotsFile("User-agent: *\nDisallow: /").refuse_url("http://x/open").reason == "robots"


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


def test_a_rules_file_that_is_no_text_too_large_or_nested_too_deeply_is_one_clear_error(tmp_path):
    path = tmp_path / "rules.yaml"
    for content in (b"\xff\xfe\x00", b"[" * 5_000, b"x" * (2 << 20)):
        path.write_bytes(content)
        with pytest.raises(InvalidInput, match="rules file"):
            BlockList.read(path, "x")


def test_an_expression_with_catastrophic_backtracking_ends_quickly(tmp_path):
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


def test_allow_rules_lift_refusals_of_the_lexicon_and_no_others(tmp_path):
    path = tmp_path / "rules.yaml"
    path.write_text(ALLOWED)
    rules = BlockList.read(path, "shop")
    hazards = HazardPolicy(rules)
    assert reason(hazards, "Delete demo data") is None
    assert reason(hazards, "Delete all data") == "hazard"
    assert reason(hazards, "Innocent", "link", "http://shop/archive/3/delete") is None
    assert hazards.refuse_url("http://shop/archive/3/delete") is None
    assert hazards.refuse_url("http://shop/orders/3/delete").reason == "hazard"
    assert reason(rules, "Never delete demo data") == "rule"
    assert reason(HazardPolicy(BlockList.read(path, "other")), "Delete demo data") == "hazard"


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
def test_every_element_is_either_new_or_old_in_document_order(state, parent, mode):
    new, old = split_candidates(snapshot(*state), snapshot(*parent), mode)
    assert sorted(map(id, [*new, *old])) == sorted(map(id, state))
    assert [c for c in state if any(c is n for n in new)] == new
    if mode == "off":
        assert old == []


def test_paper_mode_compares_positions_and_element_mode_compares_elements():
    state, parent = snapshot(candidate("New", "link", "http://x/2")), snapshot(candidate("Old", "link", "http://x/1"))
    assert split_candidates(state, parent, "paper")[0] == []
    assert split_candidates(state, parent, "element")[0] == list(state.candidates)
    assert split_candidates(state, None, "paper")[0] == list(state.candidates)


def test_an_element_that_is_covered_in_the_parent_is_new_where_it_is_not_covered():
    link, covered = candidate("Home"), candidate("Home", covered=True)
    assert split_candidates(snapshot(link), snapshot(covered), "element") == ([link], [])
    assert split_candidates(snapshot(covered), snapshot(link), "element") == ([], [covered])
    assert CoveredPolicy().refuse(covered, snapshot()).reason == "covered"
    assert CoveredPolicy().refuse(link, snapshot()) is None


def test_the_action_that_led_to_a_state_is_new_again_when_the_state_shows_more():
    button, more = candidate("Next"), candidate("Slide 2", "link", "http://x/2", xpath="/html[1]/body[1]/a[2]")
    first, second = snapshot(button), snapshot(button, more)
    assert split_candidates(second, first, "element", button.action) == ([button, more], [])
    assert split_candidates(first, first, "element", button.action) == ([], [button])
    assert split_candidates(second, first, "element", more.action) == ([more], [button])


@pytest.mark.parametrize("difference", [{"role": "tab"}, {"kind": "hover"}])
def test_choices_and_hovers_are_not_new_again(difference):
    again = candidate("Next", **difference)
    more = candidate("Slide 2", "link", "http://x/2", xpath="/html[1]/body[1]/a[2]")
    assert split_candidates(snapshot(again, more), snapshot(again), "element", again.action) == ([more], [again])


def test_new_content_is_new_in_any_position():
    here, there = candidate("Go"), candidate("Go", xpath="/html[1]/body[1]/a[7]")
    assert not shows_new_content(snapshot(here, there), [snapshot(here)])
    assert shows_new_content(snapshot(here, candidate("Stay")), [snapshot(here), snapshot(there)])
