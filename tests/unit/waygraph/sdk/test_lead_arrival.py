"""Acceptance of a page as the page of a lead."""

from dataclasses import replace

import pytest

from tests.sites.static_pages import BASE, look
from waygraph.index.graph import Action, Lead, lead_id
from waygraph.sdk.lead_arrival import arrival_problem

URL = f"{BASE}/admin/reports"


def lead(*names, url=URL):
    return Lead(lead_id(url), url, names, "", "", "home", Action("click", target=url), 1)


def page(html, url=URL, status=200):
    return replace(look(html, url), status=status)


@pytest.mark.parametrize(
    ("names", "html", "url"),
    [
        (["Monthly report"], "<h1>Reports of this month</h1>", URL),
        (["Figures"], "<title>Reports</title>", URL),
        (["Monthly report"], "<h1>Reports</h1>", f"{BASE}/statistics"),
        ([], "<h1>Nothing that fits</h1>", f"{BASE}/42"),
    ],
)
def test_page_with_a_word_of_the_link_or_of_the_url_is_accepted(names, html, url):
    expected = lead(*names, url=url if not names else URL)
    assert arrival_problem(page(html, url), expected) == ""


@pytest.mark.parametrize(
    ("html", "url", "status"),
    [
        ("<h1>Reports</h1>", URL, 404),
        ("<h1>Sign in</h1>", URL, 200),
        ("<h1>Sign in</h1>", f"{BASE}/login", 200),
        ("<h1>Reports</h1>", "http://other.example/admin/reports", 200),
    ],
)
def test_other_pages_are_not_accepted(html, url, status):
    assert arrival_problem(page(html, url, status), lead("Reports")) != ""
