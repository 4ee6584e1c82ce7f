"""A teleport arrives on pages that differ with every load, and only on the right ones."""

from itertools import count

import pytest

from tests.browsers import BROWSERS, LOOPBACK_ONLY, shared_browser
from tests.exploring import explore_with
from tests.sites.noise import KINDS, noise_pages, noise_truth
from tests.sites.server import FixtureServer
from tests.sites.truth import measure
from waygraph.core.settings import Settings
from waygraph.index.store import Store
from waygraph.pipeline.jobs.publishing.draft import draft_from_capture
from waygraph.sdk.local import StoreMap
from waygraph.sdk.teleport import teleport

pytestmark = pytest.mark.extended

NAMES = ("ads", "bars", "csrf", "fast_carousel", "blocks", "stars")
CALM = """<!doctype html><title>Calm</title><h1>A calm page</h1>
<button onclick="this.nextElementSibling.toggleAttribute('hidden')">Menu</button>
<ul hidden><li>The menu is open</li><li><a href="/contact">Write to us</a></li></ul>
<p>Nothing ever changes here.</p><p>It has a second paragraph.</p>"""
LOADS = count(1)


def tools(_):
    """A page with a varying number of tips on each load, and tools whose hints differ in their text only."""
    return f"""<!doctype html><title>Tools</title><h1>Tools</h1><p>Choose one of the tools.</p>
    <style>i {{ display: inline-block; width: 9px; height: 9px }}</style>
    <button onclick="hint('Cuts wood')">Saw</button><button onclick="hint('Drives nails')">Hammer</button>
    <div id=hint></div><p>Tip: {"<i></i>" * next(LOADS)}</p>
    <script>
      const hint = (text) => {{ document.querySelector('#hint').innerHTML = `<p><b>${{text}}</b></p>`; }};
    </script>"""


@pytest.fixture(scope="module")
def noisy(tmp_path_factory):
    """The running site, its map, and the node of each true state."""
    kinds = tuple(kind for kind in KINDS if kind.name in NAMES)
    pages = noise_pages(kinds)
    pages["/about"] = CALM
    pages["/tools"] = tools
    pages["/"] += "<p><a href=/tools>Tools</a></p>"
    with FixtureServer(pages) as site:
        store = Store.open(str(tmp_path_factory.mktemp("noise") / "maps"), create=True)
        settings = Settings(browser=LOOPBACK_ONLY, explore={"depth": 3, "workers": 2})
        capture = explore_with(settings, site.url, blobs=store.blobs)
        store.publish(draft_from_capture(capture, settings))
        found = measure(noise_truth(kinds), capture.graph, capture.observations, site.url)
        ids = {name: members[0] for name, members in found.members.items() if members}
        with StoreMap(store.location) as maps:
            yield site, capture, maps, ids


def calm_states(capture):
    """The calm page and its open menu."""
    said = {o.node_id: [s.text for s in o.segments] for o in capture.observations.values() if o.url.endswith("/about")}
    (closed,) = [node_id for node_id, texts in said.items() if "The menu is open" not in texts]
    (opened,) = [node_id for node_id, texts in said.items() if "The menu is open" in texts]
    return closed, opened


def walk(noisy, *targets, script=""):
    """Teleport to each target in a page of its own; return the results and the final texts of the pages."""
    _, capture, maps, _ = noisy

    async def run():
        ended = []
        async with shared_browser() as browser:
            for target in targets:
                context = await browser.new_context(viewport={"width": 1280, "height": 800}, reduced_motion="reduce")
                page = await context.new_page()
                if script:
                    await page.add_init_script(f"addEventListener('DOMContentLoaded', () => {{ {script} }})")
                result = await teleport(page, maps, capture.site, target)
                ended.append((result, await result.page.inner_text("body")))
                await context.close()
        return ended

    return BROWSERS.run(run())


def test_pages_with_noise_are_reached_with_their_menus_open(noisy):
    ids = noisy[3]
    names = [f"{name}{what}" for name in NAMES for what in ("", " menu", " tab")]
    ended = walk(noisy, *(ids[name] for name in names))
    outcomes = {name: result.outcome for name, (result, _) in zip(names, ended, strict=True)}
    assert set(outcomes.values()) <= {"arrived", "arrived_equivalent"}, outcomes
    assert "arrived_equivalent" in outcomes.values()
    for name, (result, text) in zip(names, ended, strict=True):
        assert result.node_id == ids[name]
        assert ("The menu is open" in text) is name.endswith(" menu")
        assert ("Second panel" in text) is name.endswith(" tab")


def test_an_additional_advertisement_does_not_fail_a_teleport(noisy):
    """It is below the existing content: no element moves, but no snapshot with it was recorded."""
    script = "const ad = document.createElement('aside'); ad.textContent = 'Buy more'; document.body.append(ad);"
    ended = walk(noisy, *calm_states(noisy[1]), script=script)
    assert [result.outcome for result, _ in ended] == ["arrived_equivalent"] * 2


@pytest.mark.parametrize(
    "script",
    [
        "addEventListener('click', (e) => e.stopImmediatePropagation(), true)",
        "document.querySelector('li').remove()",
        "document.querySelector('button').textContent = 'Renamed'",
        "document.querySelector('button').remove()",
    ],
    ids=["a click does nothing", "an entry is missing", "button renamed", "no button"],
)
def test_closed_or_different_menu_is_not_taken_for_the_open_menu(noisy, script):
    _, opened = calm_states(noisy[1])
    ((result, _),) = walk(noisy, opened, script=script)
    assert not result.arrived
    assert result.node_id != opened
    assert result.problem


@pytest.mark.parametrize(
    "script",
    [
        "const menu = document.querySelector('ul'); menu.hidden = false; menu.toggleAttribute = () => {};",
        "document.body.innerHTML = '<h1>Log in</h1><input type=password><button>Log in</button>'",
    ],
    ids=["its menu stays open", "it asks for a password"],
)
def test_page_in_another_state_is_not_reported_as_reached(noisy, script):
    closed, _ = calm_states(noisy[1])
    ((result, _),) = walk(noisy, closed, script=script)
    assert not result.arrived


def test_menu_open_from_the_start_is_closed_on_the_path(noisy):
    closed, _ = calm_states(noisy[1])
    ((result, _),) = walk(noisy, closed, script="document.querySelector('ul').hidden = false")
    assert (result.outcome, result.node_id) == ("arrived", closed)
    assert [step.action for step in result.steps][-1] == 'click button "Menu"'


@pytest.mark.parametrize(
    ("script", "outcome", "hints"),
    [
        ("", "arrived_equivalent", {"Cuts wood", "Drives nails"}),
        ("document.querySelector('button').remove()", "arrived_equivalent", {"Drives nails"}),
        ("document.body.onclick = () => hint('Bites</b><b>hard')", "failed", set()),
    ],
    ids=["as explored", "the other tool alone", "a hint of another make"],
)
def test_a_state_of_a_changing_page_is_recognised_by_what_the_step_changed(noisy, script, outcome, hints):
    """The hint of one tool is the recorded one; that of the other differs in its text alone, and either will do."""
    said = {o.node_id: [s.text for s in o.segments] for o in noisy[1].observations.values() if o.title == "Tools"}
    (hinted,) = [node_id for node_id, texts in said.items() if "Cuts wood" in texts]
    ((result, text),) = walk(noisy, hinted, script=script)
    assert result.outcome == outcome
    shown = {hint for hint in ("Cuts wood", "Drives nails") if hint in text}
    assert (len(shown) == 1) is result.arrived
    assert shown <= hints
