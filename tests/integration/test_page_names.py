"""Roles and names of elements, compared with the browser's own accessibility tree."""

import re
from dataclasses import replace

import pytest

from tests.browsers import BROWSERS, LOOPBACK_ONLY
from tests.exploring import explore
from tests.sites.naming import CONSTRUCTIONS, OURS, naming_page, pressed_page
from tests.sites.server import FixtureServer
from waygraph.core.settings import CaptureProfile, ExploreSettings
from waygraph.pipeline.browser.page.snapshot import SnapshotOptions
from waygraph.pipeline.browser.session import ContextOptions, GuardedPage

#: Names of roles in the browser's tree that stand for others of ARIA.
SAME_ROLES = {"image": "img"}
#: Finds the marked elements, through shadow roots; the page keeps a closed one in a property of its host.
_FIND = """(() => {
  const found = {};
  const search = (root) => {
    for (const element of root.querySelectorAll("*")) {
      const mark = element.dataset?.testid;
      if (mark) found[mark] = element;
      if (element.shadowRoot ?? element.closed) search(element.shadowRoot ?? element.closed);
    }
  };
  search(document);
  return found;
})()"""


def value(node, key):
    return node.get(key, {}).get("value", "")


async def browsers_own(page):
    """Return role and name of the marked elements by mark, from the browser's accessibility tree."""
    devtools = await page.context.new_cdp_session(page)
    found = (await devtools.send("Runtime.evaluate", {"expression": _FIND}))["result"]["objectId"]
    listed = await devtools.send("Runtime.getProperties", {"objectId": found, "ownProperties": True})
    backend = {}
    for each in listed["result"]:
        if each["enumerable"]:
            node = await devtools.send("DOM.describeNode", {"objectId": each["value"]["objectId"]})
            backend[node["node"]["backendNodeId"]] = each["name"]
    tree = await devtools.send("Accessibility.getFullAXTree")
    return {
        backend[node["backendDOMNodeId"]]: (
            "" if node["ignored"] else value(node, "role"),
            " ".join(value(node, "name").split()),
        )
        for node in tree["nodes"]
        if node.get("backendDOMNodeId") in backend
    }


async def observe(site):
    options = replace(SnapshotOptions.from_settings(LOOPBACK_ONLY, ExploreSettings()), outline=True)
    page = await GuardedPage.open(
        await BROWSERS.browser(),
        ContextOptions(CaptureProfile(), user_agent="waygraph-test"),
        settings=LOOPBACK_ONLY,
        snapshot_options=options,
        document_policy=lambda _: None,
    )
    try:
        return (await page.view.goto(site.url)).snapshot, await browsers_own(page.page)
    finally:
        await page.close()


def own(snapshot):
    """Return role and name of the marked elements by mark: of candidates, else the first row of its region."""
    found = {}
    regions = [at for at, node in enumerate(snapshot.outline) if node.role == "region" and node.name[1:].isdigit()]
    for at, end in zip(regions, [*regions[1:], None], strict=True):
        rows = [(node.role, node.name) for node in snapshot.outline[at + 1 : end] if node.role != "StaticText"]
        options = [row for row in rows if row[0] == "option"]  # of a list, which comes before them
        found[snapshot.outline[at].name] = (*options, *rows, ("", ""))[0]
    for candidate in snapshot.candidates:
        if mark := re.fullmatch(r'\[data-testid="(n\d+)"\]', candidate.action.css):
            found[mark[1]] = (candidate.action.role, candidate.action.name)
    return found


@pytest.fixture(scope="module")
def named():
    """Role and name of every construction: ours, and the browser's."""
    with FixtureServer({"/": naming_page()}) as site:
        snapshot, theirs = BROWSERS.run(observe(site))
    ours = own(snapshot)
    return {
        name: (ours.get(f"n{number}"), theirs.get(f"n{number}", ("", ""))) for number, name in enumerate(CONSTRUCTIONS)
    }


@pytest.mark.parametrize("construction", CONSTRUCTIONS)
def test_role_and_name_are_the_browsers_own(named, construction):
    ours, (role, name) = named[construction]
    theirs = (SAME_ROLES.get(role, role), name)
    if construction in OURS:
        assert ours == OURS[construction][:2]
        assert ours != theirs, "it is no longer different"
    else:
        assert ours == theirs


@pytest.mark.parametrize("mode", ["skip", "press"])
def test_nothing_is_pressed_whose_name_says_that_it_deletes(named, mode):
    hazards = [name for name, (_, (_, name_of)) in named.items() if "elete" in name_of]
    with FixtureServer({"/": pressed_page(hazards), "*": "<title>Else</title>"}) as site:
        explore(site.url, depth=1, hazards=mode)
        assert {path for path in site.paths if path.startswith("/pressed")} == {"/pressed/harmless"}
