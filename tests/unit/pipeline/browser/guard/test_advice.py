"""When blocking a request breaks a page, the report names the request and the rule to write."""

from dataclasses import replace

import yaml

from waygraph.index.graph import BlockedRequest, Segment
from waygraph.pipeline.browser.guard import GuardRules, OutgoingRequest, suggest_rule
from waygraph.pipeline.browser.page.snapshot import Snapshot
from waygraph.pipeline.explore.policies.blocklist import BlockList
from waygraph.pipeline.explore.policies.hazard import HazardPolicy

PAGE = Snapshot(
    id="a",
    url="https://shop.example/list",
    raw_url="https://shop.example/list",
    title="List",
    content_type="text/html",
    status=200,
    structure=tuple(str(i) for i in range(100)),
    candidates=(),
    segments=tuple(Segment("text", f"Line {i}", None) for i in range(20)),
    capped=False,
    opened=0,
)
READ = BlockedRequest("POST", "https://shop.example/api/items?page=1", "xhr")


def test_nearly_empty_page_suggests_a_rule_for_its_blocked_request(tmp_path):
    told = suggest_rule([READ], None, replace(PAGE, structure=("1",), segments=()))
    assert "POST https://shop.example/api/items?page=1" in told
    rule = told[told.index("sites:") :]
    assert yaml.safe_load(rule)["sites"][0]["host"] == "shop.example"
    file = tmp_path / "rules.yaml"
    file.write_text(rule)
    assert (
        GuardRules.read(file, "shop.example").matching_read_rule(OutgoingRequest(READ.method, READ.url, {}, ""))
        is not None
    )


def test_page_that_lost_most_content_or_asks_for_a_password_is_reported():
    lost = replace(PAGE, id="b", structure=("1", "2"), segments=PAGE.segments[:2])
    assert "empty" in suggest_rule([READ], PAGE, lost)
    assert "logged out" in suggest_rule([READ], PAGE, replace(lost, password=True))
    login = replace(PAGE, id="b", url="https://shop.example/login")
    assert "logged out" in suggest_rule([READ], PAGE, login)
    assert "logged out" in suggest_rule([READ], PAGE, replace(login, url="https://shop.example/a", password=True))
    assert "logged out" in suggest_rule([READ], PAGE, login, requested_url="https://shop.example/orders")


def test_requested_login_and_smaller_pages_are_not_reported():
    assert suggest_rule([READ], PAGE, replace(PAGE, id="b", password=True)) is None, "a dialog that asks to sign in"
    login = replace(PAGE, id="b", url="https://shop.example/login?next=1", password=True)
    assert suggest_rule([READ], PAGE, login, requested_url="https://shop.example/login?next=1#a") is None
    smaller = replace(PAGE, id="b", url="https://shop.example/item", structure=("1", "2"), segments=PAGE.segments[:5])
    assert suggest_rule([READ], PAGE, smaller) is None, "another page may show less"
    blank = replace(PAGE, segments=())
    assert suggest_rule([READ], blank, blank) is None


def test_rule_for_blocked_gets_names_the_url(tmp_path):
    seen = replace(PAGE, structure=("1",), segments=())
    acting = BlockedRequest("GET", "https://shop.example/items/delete?x=1", "fetch")
    told = suggest_rule([acting], None, seen)
    file = tmp_path / "rules.yaml"
    file.write_text(told[told.index("sites:") :])
    hazards = HazardPolicy(BlockList.read(file, "shop.example"))
    assert HazardPolicy().refuse_url(acting.url) is not None
    assert hazards.refuse_url(acting.url) is None
    assert "POST" in suggest_rule([acting, READ], None, seen)


def test_unaffected_pages_and_blocked_pings_are_not_reported():
    assert suggest_rule([READ], PAGE, replace(PAGE, id="b")) is None
    assert suggest_rule([READ], PAGE, PAGE) is None
    assert (
        suggest_rule([BlockedRequest("POST", "https://shop.example/seen", "ping")], None, replace(PAGE, segments=()))
        is None
    )
    assert suggest_rule([], None, replace(PAGE, segments=())) is None


def test_url_is_escaped_in_the_rule():
    evil = BlockedRequest("POST", 'https://shop.example/a"}\n- x: [', "xhr")
    told = suggest_rule([evil], None, replace(PAGE, structure=(), segments=()))
    (site,) = yaml.safe_load(told[told.index("\nsites:") :])["sites"]
    assert set(site) == {"host", "reads"}
