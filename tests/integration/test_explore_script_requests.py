"""What scripts of pages request: fresh answers come from the store of the run, and no page asks for everything."""

import json
from collections import Counter
from functools import cache

import pytest

from tests.exploring import explore
from tests.sites.server import FixtureServer, Page
from waygraph.index.graph.export import to_json
from waygraph.pipeline.browser.guard.visits import MAX_SCRIPT_REQUESTS

FRESH = Page('["a"]', content_type="application/json", headers={"Cache-Control": "max-age=600"})
LIVE = Page('["b"]', content_type="application/json")
LINKS = "".join(f"<a href=/{name}>Page {name}</a>" for name in "abcd")
PARTS = ("fresh.json", "live.json", "missing.html")
HITS = 150


def page(name):
    return f"""<title>{name}</title><nav>{LINKS}</nav><h1>{name}</h1><ul id=parts></ul><script>
    for (const part of {json.dumps(PARTS)})
      fetch(`/${{part}}`).then(async (answer) => {{ parts.innerHTML += `<li>${{part}}: ${{answer.status}}</li>` }})
    </script>"""


#: A page of results that shows an excerpt of each hit, as the search page of Sphinx does.
SEARCH = f"""<title>Search</title><h1>Search</h1><a href=/>Home</a><ol id=hits></ol><script>
    let shown = 0
    const show = async () => {{
      const item = hits.appendChild(document.createElement("li"))
      item.innerHTML = `<a href="/hit/${{shown}}#first">Hit ${{shown}}</a>`
      fetch(`/hit/${{shown}}`).then(async (hit) => item.insertAdjacentHTML("beforeend", await hit.text()))
      if (++shown < {HITS}) setTimeout(show, 1)
    }}
    show()
    </script>"""


@pytest.fixture(scope="module")
def explored():
    """Return the capture for a number of workers, and how often each target was requested; each is explored once."""
    pages = {name: page(name) for name in "abcd"}
    with FixtureServer(
        {"/": page("home"), **{f"/{name}": html for name, html in pages.items()}}
        | {"/fresh.json": FRESH, "/live.json": LIVE}
    ) as site:

        @cache
        def run(workers):
            before = len(site.paths)
            return explore(site.url, depth=2, workers=workers), Counter(site.paths[before:])

        yield run


def documents(asked):
    return sum(asked[path] for path in ("/", *(f"/{name}" for name in "abcd")))


def test_script_is_answered_from_memory_while_an_answer_is_fresh(explored):
    capture, asked = explored(1)
    assert asked["/fresh.json"] == 1
    assert capture.report.counters["requests/script_reused"] >= documents(asked) - 1


def test_answer_without_a_lifetime_is_requested_by_every_document(explored):
    _, asked = explored(1)
    assert asked["/live.json"] == documents(asked)


def test_page_that_does_not_exist_is_requested_once(explored):
    _, asked = explored(1)
    assert asked["/missing.html"] == 1


@pytest.mark.extended
def test_map_does_not_depend_on_the_workers_that_share_answers(explored):
    one, four = (
        to_json(capture.site, 1, capture.graph, leads=capture.leads) for capture, _ in (explored(1), explored(4))
    )
    assert json.dumps(one, sort_keys=True) == json.dumps(four, sort_keys=True)


@pytest.mark.parametrize("workers", [1, 4])
def test_page_that_previews_everything_may_request_a_limited_number_of_addresses(workers):
    hits = {f"/hit/{number}": f"<p>Excerpt {number}" for number in range(HITS)}
    with FixtureServer({"/": "<title>Home</title><a href=/search>Search</a>", "/search": SEARCH, **hits}) as site:
        capture = explore(site.url, depth=1, workers=workers)
        asked = Counter(site.paths)
        assert {path for path in asked if path.startswith("/hit/")} == {*list(hits)[:MAX_SCRIPT_REQUESTS]}
        assert capture.report.over_budget == (site.at("/search"),)
        state = next(node for node in capture.graph.nodes.values() if node.url == site.at("/search"))
        texts = {segment.text for segment in capture.observations[state.id].segments}
        assert {f"Hit {HITS - 1}", f"Excerpt {MAX_SCRIPT_REQUESTS - 1}"} <= texts
        assert f"Excerpt {MAX_SCRIPT_REQUESTS}" not in texts
