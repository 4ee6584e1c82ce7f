"""Addresses of pages in the markup: which of them a snapshot holds as links that no person sees, by construction."""

import pytest

from tests.browsers import BROWSERS
from tests.exploring import explore
from tests.integration.test_page_script import guarded_page, look
from tests.sites.link_constructions import CONSTRUCTIONS, INNER
from tests.sites.server import FixtureServer, Page


@pytest.fixture(scope="module")
def snapshots():
    """The snapshot of each construction, and the root of the site."""
    pages = {f"/{n}": f"<title>t</title><body>{html}" for n, (html, _) in enumerate(CONSTRUCTIONS.values())}

    async def run(site):
        async with guarded_page() as page:
            return [(await page.view.goto(site.at(path))).snapshot for path in pages]

    with FixtureServer({**pages, "/inner": INNER}) as site:
        return dict(zip(CONSTRUCTIONS, BROWSERS.run(run(site)), strict=True)), site.url.rstrip("/")


@pytest.mark.parametrize("construction", CONSTRUCTIONS)
def test_links_that_no_person_sees(construction, snapshots):
    seen, root = snapshots[0][construction], snapshots[1]
    page = seen.raw_url.removeprefix(root)
    expected = [(address.replace("PAGE", page), name) for address, name in CONSTRUCTIONS[construction][1]]
    assert [(link.url.removeprefix(root), link.name) for link in seen.links] == expected
    assert all(link.hidden for link in seen.links)
    assert not {link.url for link in seen.links} & {each.action.target for each in seen.candidates}


def test_links_behind_the_last_element_of_a_page_that_was_cut_are_seen_by_a_person():
    html = "<title>t</title><style>i { display: block; height: 1px }</style>" + "<i></i>" * 20_001
    seen = look(f"{html}<a href=/x>Contact</a><a href=/y hidden>Trap</a>")
    assert seen.cut
    assert [(link.name, link.hidden) for link in seen.links] == [("Contact", False), ("Trap", True)]


def test_a_list_of_thousands_leaves_room_for_the_other_links():
    script = """for (let i = 0; i < 12_000; i++) {
      list.append(Object.assign(document.createElement("a"), {href: `/items/${i}`}));
    }"""
    seen = look(f"<title>t</title><p id=list hidden></p><a href=/x hidden>Contact</a><script>{script}</script>")
    assert (len(seen.links), seen.links_cut, seen.links[-1].name) == (10_001, 2_000, "Contact")


def test_links_that_no_person_sees_do_not_identify_a_page_and_are_not_visited():
    pages = {
        "/": "<title>Home</title><h1>Home</h1><a href=/shown>Shown</a><a href=/trap hidden>Trap</a>",
        "/shown": "<title>Shown</title><h1>Shown</h1><a href=/both>Both</a><link rel=next href=/next>",
        "/hiding": "<title>H</title>",
        "/robots.txt": Page("User-agent: *\nDisallow: /next\n", content_type="text/plain"),
    }
    with FixtureServer(pages) as site:
        capture = explore(site.url, depth=1)
        visited = {path for _, path in site.requests}
    leads = {lead.url.rpartition("/")[2]: lead for lead in capture.leads.values()}
    assert not {"/trap", "/next", "/both"} & visited
    assert {name: (lead.hidden, lead.refusal, lead.action.kind) for name, lead in leads.items()} == {
        "trap": (True, "", "goto"),
        "next": (True, "robots", "goto"),
        "both": (False, "", "click"),
    }
    assert capture.report.counters["leads/hidden"] == 2


def test_the_report_says_what_the_budget_of_leads_left_out():
    records = "".join(f"<li><a href=/records/{n}>Record {n}</a>" for n in range(6))
    with FixtureServer({"/": f"<title>Home</title><ul>{records}</ul>"}) as site:
        capture = explore(site.url, depth=0, lead_bytes=1_000)
        root = site.url.rstrip("/")
    assert len(capture.leads) == 2
    assert capture.report.counters["leads/left_out"] == 4
    (advice,) = capture.report.advice
    assert "4 pages" in advice
    assert f"4 in {root}/records/*" in advice
