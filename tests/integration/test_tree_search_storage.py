"""Returns of a tree search to states that depend on what the site keeps in the browser."""

import pytest

from tests.searching import search
from tests.sites.server import FixtureServer
from waygraph.agents.search import SearchTree

#: How a page keeps that its list is folded: `keep()` and `isKept()`. With `timer` it
#: reads that late, and stores it again and again.
AREAS = {
    "cookie": "keep = () => document.cookie = 'folded=1;path=/'; isKept = () => document.cookie.includes('folded=1')",
    "local": "keep = () => localStorage.setItem('folded', '1'); isKept = () => !!localStorage.getItem('folded')",
    "timer": """folded = null; keep = () => folded = true; isKept = () => folded;
        setTimeout(() => { folded ??= !!localStorage.folded; draw(); }, 60);
        store = () => folded ? localStorage.folded = '1' : delete localStorage.folded;
        setInterval(() => folded === null || store(), 10)""",
    "session": "keep = () => sessionStorage.setItem('folded', '1'); isKept = () => !!sessionStorage.getItem('folded')",
}
PAGE = """<!doctype html><title>{title}</title><h1>{title}</h1><a href={target}>{name}</a>
<button onclick="keep(); draw()">Fold</button> <button onclick="panel.hidden = false">Details</button>
<p id=list></p><p id=panel hidden>From one forest</p>
<script>{area}; draw = () => list.textContent = isKept() ? 'Folded' : 'Oak, ash, elm'; draw()</script>"""
SCRIPT = {
    "Start": {"Shelf": 0.9},
    "Shelf / Oak, ash, elm": {"Fold": 0.95, "Details": 0.5},
    "Shelf / Folded": {"Rack": 0.9},
    "Rack / Folded": {"Details": 0.3, "Box": 0.2},
}


@pytest.fixture(params=[pytest.param(area, marks=pytest.mark.extended if area == "timer" else ()) for area in AREAS])
def site(request):
    def page(title, name, target):
        return PAGE.format(title=title, name=name, target=target, area=AREAS[request.param])

    start = "<!doctype html><title>Start</title><h1>Start</h1><a href=/shelf>Shelf</a>"
    pages = {"/": start, "/shelf": page("Shelf", "Rack", "/rack"), "/rack": page("Rack", "Box", "/box")}
    with FixtureServer({**pages, "/box": page("Box", "Shelf", "/shelf")}) as server:
        yield server


def test_a_return_sets_back_what_the_site_kept_then(site, tmp_path):
    run, _, _ = search(site, SCRIPT, tree_file=tmp_path / "tree.json")
    assert [step.action.removeprefix("click ") for step in run.steps] == [
        *('link "Shelf"', 'button "Fold"', 'link "Rack"'),
        'button "Details"',  # of the shelf before it was folded
        'button "Details"',  # of the rack, to which the shelf was folded
        'link "Box"',
    ]
    tree = SearchTree.model_validate_json((tmp_path / "tree.json").read_bytes())
    assert [(each.target, each.tried, each.arrived) for each in tree.backtracks] == [
        (1, ["url:1"], True),
        (3, ["url:3"], True),
        (3, ["url:3"], True),
    ]
    assert tree.nodes[-1].state.title == "Box"


def test_a_return_that_fails_leaves_what_the_site_keeps_as_it_was(site):
    async def close(step, observation):
        if step.action == 'click link "Rack"':
            site.pages["/shelf"] = "<!doctype html><title>Shelf</title><h1>Closed</h1>"

    script = {**SCRIPT, "Rack / Folded": {"Box": 0.3}}
    run, tabs, text = search(site, script, on_step=close)
    assert [step.action for step in run.steps][2:] == ['click link "Rack"', 'click link "Box"']
    assert tabs == 1
    assert "Folded" in text


@pytest.mark.parametrize("target", ["_self", "_blank"])
def test_a_return_from_a_page_of_another_origin_sets_back_what_the_site_kept(target, tmp_path):
    elsewhere = "<!doctype html><title>Elsewhere</title><h1>Elsewhere</h1>"
    with FixtureServer({"/": elsewhere}) as other:
        area = AREAS["local"]
        shelf = PAGE.format(title="Shelf", name="Away", target=f"'{other.url}' target={target}", area=area)
        start = "<!doctype html><title>Start</title><h1>Start</h1><a href=/shelf>Shelf</a>"
        script = {**SCRIPT, "Shelf / Folded": {"Away": 0.9}}
        with FixtureServer({"/": start, "/shelf": shelf}) as site:
            run, _, text = search(site, script, tree_file=tmp_path / "tree.json")
    assert [step.action.removeprefix("click ") for step in run.steps] == [
        *('link "Shelf"', 'button "Fold"', 'link "Away"', 'button "Details"'),
    ]
    assert "Oak, ash, elm" in text
    tree = SearchTree.model_validate_json((tmp_path / "tree.json").read_bytes())
    assert [(each.target, each.arrived) for each in tree.backtracks] == [(1, True)]


def test_a_return_that_fails_from_a_page_of_another_origin_leaves_what_the_site_keeps_as_it_was():
    with FixtureServer({}) as other, FixtureServer({}) as site:

        async def close(step, observation):
            if step.action == 'click link "Away"':
                site.pages["/shelf"] = "<!doctype html><title>Shelf</title><h1>Closed</h1>"

        def page(title, name, target):
            return PAGE.format(title=title, name=name, target=target, area=AREAS["local"])

        other.pages["/"] = f"<!doctype html><title>Away</title><a href={site.at('/rack')}>Rack</a>"
        site.pages |= {
            "/": "<!doctype html><title>Start</title><h1>Start</h1><a href=/shelf>Shelf</a>",
            "/shelf": page("Shelf", "Away", f"'{other.url}' target=_blank"),
            "/rack": page("Rack", "Box", "/box"),
        }
        script = {**SCRIPT, "Shelf / Folded": {"Away": 0.9}, "Away": {"Rack": 0.3}, "Rack / Folded": {}}
        run, _, text = search(site, script, on_step=close)
    assert [step.action for step in run.steps][2:] == ['click link "Away"', 'click link "Rack"']
    assert "Folded" in text
