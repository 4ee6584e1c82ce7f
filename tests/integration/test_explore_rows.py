"""Items that only a listener around them means: few of those that do not react are tried, moved ones are found.

What each list shows is among the answers of `tests/sites/phenomena/rows.py`.
"""

import pytest

from tests.browsers import BROWSERS, LOOPBACK_ONLY, shared_browser
from tests.exploring import explore, explore_with
from tests.sites.answers import LIBRARY, page
from tests.sites.server import FixtureServer
from waygraph.core.settings import Settings
from waygraph.index.graph.export import to_json
from waygraph.index.store import Store
from waygraph.pipeline.jobs.publishing.draft import draft_from_capture
from waygraph.sdk.local import StoreMap
from waygraph.sdk.teleport import teleport

ANALYTICS = """<script>
const seen = []; document.addEventListener('click', ((event) => { seen.push(event.target.nodeName); }).bind(null));
</script>"""


#: The same, and tells its server of each click.
SENDING = """<script>
const tell = (what) => navigator.sendBeacon('/seen', what);
document.addEventListener('click', (event) => { tell(event.target.nodeName); });
</script>"""


def listing(number: int) -> str:
    rows = "".join(f"<tr><td>Record {number}.{row}<td>In stock</tr>" for row in range(8))
    notes = "".join(f"<li>Note {row} on page {number}</li>" for row in range(8))
    links = "".join(f"<a href=/p/{other}>Page {other}</a> " for other in range(6))
    return (
        f"<title>Page {number}</title>{links}<table><tbody>{rows}</tbody></table><ul>{notes}</ul><p>{'x ' * number}</p>"
    )


def listings(script, *workers):
    """Captures of the listings with a script, by numbers of workers."""
    shown = {f"/p/{number}": listing(number) + script for number in range(6)}
    with FixtureServer({"/": shown["/p/0"], **shown}) as site:
        return [explore(site.url, depth=2, workers=number) for number in workers]


@pytest.fixture(scope="module")
def plain():
    (capture,) = listings("", 1)
    return capture


@pytest.mark.parametrize("script", [ANALYTICS, SENDING], ids=["kept", "sent"])
def test_a_listener_of_the_whole_page_that_only_watches_costs_few_actions(script, plain):
    watched, by_two = listings(script, 1, 2)
    assert len(watched.graph.nodes) == len(plain.graph.nodes)
    tried = [e for e in watched.graph.edges if e.action.role in {"", "listitem"} and not e.inherited]
    assert 0 < len(tried) <= 10
    assert watched.report.counters["items/left_alone"] > 0
    assert to_json("site", 1, watched.graph) == to_json("site", 1, by_two.graph)


MOVED = f"""<!doctype html><title>People</title><script>{LIBRARY}</script><table><tbody id=rows></tbody></table><script>
const people = ['Ann in Berlin', 'Bob in Paris', 'Cy in Rome', 'Dee in Oslo'];
if (location.search) people.unshift('Zoe in Nice', 'Yan in Lyon');
rows.innerHTML = people.map((name) => `<tr><td>${{name}}<td>Details follow</tr>`).join('');
const show = (event) => say(event.target.parentNode.cells[0].textContent.toLowerCase().replaceAll(' ', '-'));
rows.addEventListener('click', show.bind(null));
</script>"""


def test_a_walk_finds_the_row_at_another_place_of_the_list(tmp_path):
    with FixtureServer({"/": page("<a href=/people>People</a>"), "/people": MOVED}) as site:
        store = Store.open(str(tmp_path / "maps"), create=True)
        settings = Settings(browser=LOOPBACK_ONLY, explore={"workers": 1, "depth": 3})
        capture = explore_with(settings, site.url, blobs=store.blobs)
        store.publish(draft_from_capture(capture, settings))
        step = next(edge for edge in capture.graph.edges if edge.action.name.startswith("Cy in Rome"))
        # New rows are on top when an agent comes.
        site.pages["/people"] = MOVED.replace("if (location.search)", "if (true)")

        async def work():
            async with shared_browser() as browser:
                context = await browser.new_context(viewport={"width": 1280, "height": 800}, reduced_motion="reduce")
                with StoreMap(store.location) as maps:
                    result = await teleport(await context.new_page(), maps, capture.site, step.target)
                    return result, await result.page.inner_text("body")

        result, text = BROWSERS.run(work())
    assert "found: cy-in-rome" in text, result
