"""When stopping a request broke a page, the report says which request and what rule to write."""

from dataclasses import replace

import yaml

from index.graph import BlockedRequest, Segment
from pipeline.browser.guard import GuardRules, Sent, advice
from pipeline.browser.snapshot import Snapshot
from pipeline.explore.blocklist import BlockList
from pipeline.explore.hazard import Hazards

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


def test_a_page_that_shows_next_to_nothing_names_the_request_and_a_rule_that_lets_it_pass(tmp_path):
    told = advice([READ], None, replace(PAGE, structure=("1",), segments=()))
    assert "POST https://shop.example/api/items?page=1" in told
    rule = told[told.index("sites:") :]
    assert yaml.safe_load(rule)["sites"][0]["host"] == "shop.example"
    file = tmp_path / "rules.yaml"
    file.write_text(rule)
    assert GuardRules.read(file, "shop.example").why_read(Sent(READ.method, READ.url, {}, "")) is not None


def test_a_page_that_lost_most_of_what_it_showed_or_asks_for_a_password_is_told():
    lost = replace(PAGE, id="b", structure=("1", "2"), segments=PAGE.segments[:2])
    assert "empty" in advice([READ], PAGE, lost)
    assert "logged out" in advice([READ], PAGE, replace(lost, password=True))
    login = replace(PAGE, id="b", url="https://shop.example/login")
    assert "logged out" in advice([READ], PAGE, login)
    assert "logged out" in advice([READ], PAGE, replace(login, url="https://shop.example/a", password=True))
    assert "logged out" in advice([READ], PAGE, login, asked="https://shop.example/orders")


def test_what_was_asked_for_or_lies_above_the_page_is_no_surprise():
    assert advice([READ], PAGE, replace(PAGE, id="b", password=True)) is None, "a dialog that asks to sign in"
    login = replace(PAGE, id="b", url="https://shop.example/login?next=1", password=True)
    assert advice([READ], PAGE, login, asked="https://shop.example/login?next=1#a") is None
    smaller = replace(PAGE, id="b", url="https://shop.example/item", structure=("1", "2"), segments=PAGE.segments[:5])
    assert advice([READ], PAGE, smaller) is None, "another page may show less"
    blank = replace(PAGE, segments=())
    assert advice([READ], blank, blank) is None


def test_where_only_gets_were_stopped_the_rule_names_the_address(tmp_path):
    seen = replace(PAGE, structure=("1",), segments=())
    acting = BlockedRequest("GET", "https://shop.example/items/delete?x=1", "fetch")
    told = advice([acting], None, seen)
    file = tmp_path / "rules.yaml"
    file.write_text(told[told.index("sites:") :])
    hazards = Hazards(BlockList.read(file, "shop.example"))
    assert Hazards().refuse_url(acting.url) is not None
    assert hazards.refuse_url(acting.url) is None
    assert "POST" in advice([acting, READ], None, seen)


def test_pages_that_look_well_and_pings_are_not_worth_a_word():
    assert advice([READ], PAGE, replace(PAGE, id="b")) is None
    assert advice([READ], PAGE, PAGE) is None
    assert (
        advice([BlockedRequest("POST", "https://shop.example/seen", "ping")], None, replace(PAGE, segments=())) is None
    )
    assert advice([], None, replace(PAGE, segments=())) is None


def test_an_address_cannot_break_out_of_the_rule():
    evil = BlockedRequest("POST", 'https://shop.example/a"}\n- x: [', "xhr")
    told = advice([evil], None, replace(PAGE, structure=(), segments=()))
    (site,) = yaml.safe_load(told[told.index("\nsites:") :])["sites"]
    assert set(site) == {"host", "reads"}
