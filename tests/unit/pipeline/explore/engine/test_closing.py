"""Which button closes what an action opened."""

from dataclasses import replace

import pytest

from waygraph.index.graph import Action, Box
from waygraph.pipeline.browser.page.snapshot import Candidate, Snapshot
from waygraph.pipeline.explore.engine.closing import closing_button

BEFORE = Snapshot("id", "http://x/", "http://x/", "", "text/html", 200, (), (), (), capped=False, opened=0)


def button(name, *, target="", icon="", **more):
    action = Action("click", role="button", name=name, xpath=f"/html[1]/button[{name}]", target=target)
    return Candidate(
        action, tag="button", disabled=False, submits="", download=False, box=Box(0, 0, 9, 9), icon=icon, **more
    )


def closing(*opened, before=()):
    after = replace(BEFORE, candidates=(*before, *opened))
    found = closing_button(replace(BEFORE, candidates=before), after)
    return found.action.name if found else None


@pytest.mark.parametrize(
    "name",
    ["Close", " close ", "\u00d7", "Schließen", "閉じる", "Close menu", "Menü schließen", "メニューを閉じる", "Cancel"],
)
def test_names_that_close(name):
    assert closing(button(name)) == name


@pytest.mark.parametrize(
    "name",
    ["Closed", "Enclose", "Cancel my subscription", "Close the account that belongs to this address", "Hide flow", ""],
)
def test_names_that_do_not_close(name):
    assert closing(button(name)) is None


def test_a_cross_without_a_name_closes():
    assert closing(button("", icon="btn-close")) == ""
    assert closing(button("", icon="closet")) is None


def test_what_was_there_before_closes_nothing():
    assert closing(button("Done"), before=(button("Close"),)) is None


def test_closing_comes_before_cancelling_and_what_is_last_before_what_is_first():
    assert closing(button("Close menu"), button("Cancel")) == "Close menu"
    assert closing(button("Close"), button("Close menu"), button("Cancel")) == "Close"
    assert closing(button("Close"), button("Hide")) == "Close"


def test_a_link_to_another_page_closes_nothing():
    assert closing(button("Close", target="http://x/elsewhere")) is None
    assert closing(button("Close", target="http://x/#")) == "Close"
