"""Pages are requested as the site writes their addresses; what addresses are compared by is never requested."""

import pytest

from tests.exploring import explore
from tests.sites.addresses import FORMS, LINKS, pages, title
from tests.sites.server import FixtureServer
from waygraph.index.graph.paths import PathFinder


@pytest.fixture(scope="module")
def explored():
    with FixtureServer(pages()) as site:
        yield explore(site.url, depth=2), site.url.rstrip("/"), list(site.paths)


def test_no_request_differs_from_a_link(explored):
    _, _, requested = explored
    assert set(requested) == {"/", "/robots.txt", "/sitemap.xml", *LINKS, FORMS[0]}


def test_every_page_is_a_state_and_no_link_is_dead(explored):
    capture, _, _ = explored
    titles = {node.title for node in capture.graph.nodes.values()}
    assert titles >= {"Start", *map(title, (*LINKS, FORMS[0]))}
    assert not capture.report.failures
    assert not [skip for skip in capture.report.skips if skip.reason == "dead_link"]
    assert not capture.leads


def test_walks_load_the_address_of_the_first_link(explored):
    capture, url, _ = explored
    paths = PathFinder(capture.graph)
    by_title = {node.title: node for node in capture.graph.nodes.values()}
    secret = {"/image?id=1&sig=x", "/letter?token=amber", "/letter?token=birch", "/part?sid=news", "/part?sid=sport"}
    secret |= {"/java;jsessionid=abc"}
    for target in (*LINKS, FORMS[0]):
        node = by_title[title(target)]
        if target in secret:  # the values are not published, so no address can be loaded
            assert "***" in node.load_url
            assert not node.addressable
            continue
        (step,) = paths.cheapest_path(None, node.id).steps
        assert step.action.url == url + target
        assert step.expected_url == node.url


def test_browser_requests_the_links_as_they_are_written(page_browser):
    with FixtureServer(pages()) as site:
        page = page_browser.new_page()
        page.goto(site.url)
        for target in page.eval_on_selector_all("a", "all => all.map(link => link.href)"):
            page.goto(target)
        page.close()
        assert [*LINKS, *FORMS] == site.paths[1:]


def test_equal_pages_with_one_canonical_address_are_one_state_and_a_canonical_address_that_lies_merges_nothing():
    def page(name, canonical, text=""):
        link = f"<link rel=canonical href='{canonical}'>"
        return f"<title>{name}</title>{link}<h1>{name}</h1><p>{text or name}<p><a href=/>Home</a>"

    lamp, docs = page("Lamp", "https://shop.example/lamp"), page("Docs", "/docs/")
    pages = {
        **dict.fromkeys(("/lamp", "/sale/lamp", "/lamp?from=17"), lamp),
        **dict.fromkeys(("/docs", "/docs/", "/docs/index.html", "/manual"), docs),
        "/photo/1": page("Photo", "/"),
        "/photo/2": page("Photo", "/"),
        "/chair": page("Chair", "/lamp"),
        "/lamp?page=2": page("Lamp", "/lamp", "More lamps"),
    }
    start = "".join(f"<a href='{path}'>To {path}</a> " for path in pages)
    with FixtureServer({"/": f"<title>Start</title>{start}", **pages}) as site:
        capture = explore(site.url, depth=1, workers=2)
        urls = {node_id: node.url.removeprefix(site.url) for node_id, node in capture.graph.nodes.items()}
        ways = {edge.action.name.removeprefix("To "): urls[edge.target] for edge in capture.graph.edges}
    assert sorted(urls.values()) == ["", "chair", "docs", "lamp", "lamp?page=2", "photo/1", "photo/2"]
    assert {ways["/sale/lamp"], ways["/lamp?from=17"]} == {"lamp"}
    assert {ways["/docs/index.html"], ways["/manual"]} == {"docs"}
