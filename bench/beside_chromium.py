"""What of Chromium's own accessibility tree an observation does not have, each with the reason that the page gives.

A text is missing if its words do not stand next to each other in the full text. An element for interaction is missing
if none with an id has its role and name. Why it is not shown is read off the page, by rules that share nothing with
the observation:

- `off the page`: left of the page or above it, where nobody can scroll to (links that skip to the content),
- `clipped`: cut off by boxes around it that do not scroll (collapsed menus),
- `transparent`: drawn with an opacity below .05, or inside of something that is,
- `not drawn`: without a box of its own,
- `other name`, of elements: an element with an id is drawn in the same box, and has another role or name,
- `unexplained`: none of these. An agent may miss something.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from playwright.async_api import CDPSession, Page

from waygraph.agents.observation import PageObservation, render
from waygraph.agents.observation.passes.text import clean

#: Roles of Chromium's tree that an agent acts on.
INTERACTIVE = frozenset({
    "button", "link", "textbox", "searchbox", "combobox", "checkbox", "radio", "tab", "menuitem", "menuitemcheckbox",
    "menuitemradio", "switch", "slider", "spinbutton", "treeitem", "option",
})  # fmt: skip
UNEXPLAINED = "unexplained"
_WORD = re.compile(r"[^\W\d_]+|\d+")  # texts that are drawn side by side are one: "12" and "min" are "12min"
#: Called on a text or an element; the argument are the boxes of the elements that have an id.
_WHY = """function (known) {
  const box = this.nodeType === 1 ? this.getBoundingClientRect() : null;
  const place = box && [box.left + scrollX, box.top + scrollY, box.width, box.height];
  if (place && known.some((one) => one.every((edge, i) => Math.abs(edge - place[i]) <= 1))) return "other name";
  const range = document.createRange();
  range.selectNodeContents(this);
  const drawn = this.nodeType === 1 ? this : range;
  let boxes = [...drawn.getClientRects()].filter(({ width, height }) => width > 0 && height > 0)
    .map(({ left, top, right, bottom }) => ({ left, top, right, bottom }));
  if (!boxes.length) return "not drawn";
  if (boxes.every(({ right, bottom }) => right <= -scrollX || bottom <= -scrollY)) return "off the page";
  let position = "static"; // of what the box around has to contain
  for (let up = this.nodeType === 1 ? this : this.parentNode; up; up = up.assignedSlot ?? up.parentNode ?? up.host) {
    if (up.nodeType !== 1) continue;
    const style = getComputedStyle(up);
    if (Number(style.opacity) < 0.05) return "transparent";
    const isContaining = style.transform !== "none" || !["absolute", "fixed"].includes(position) ||
      (position === "absolute" && style.position !== "static");
    if (isContaining) {
      const box = up.getBoundingClientRect();
      const cuts = (overflow) => overflow === "hidden" || overflow === "clip";
      const isPage = up === document.body || up === document.documentElement;
      const cut = (one, from, to) => Object.assign(one, {
        [from]: Math.max(one[from], box[from]), [to]: Math.min(one[to], box[to]),
      });
      for (const one of up === this || isPage ? [] : boxes) {
        if (cuts(style.overflowX)) cut(one, "left", "right");
        if (cuts(style.overflowY)) cut(one, "top", "bottom");
      }
      boxes = boxes.filter(({ left, top, right, bottom }) => right > left && bottom > top);
      if (!boxes.length) return "clipped";
      position = style.position;
    }
  }
  return "";
}"""


async def beside_chromium(page: Page, observation: PageObservation) -> dict[str, Any]:
    """Compare an observation of the page as it is with Chromium's tree of the main frame.

    Parameters
    ----------
    page
        The page.
    observation
        What an agent sees of it.

    Returns
    -------
    dict
        Numbers of elements and texts of both, and the missing ones by kind, with up to six examples of each.
    """
    session = await page.context.new_cdp_session(page)
    tree: list[dict[str, Any]] = (await session.send("Accessibility.getFullAXTree"))["nodes"]
    nodes = [node for node in tree if not node["ignored"]]
    theirs = [node for node in nodes if node["role"]["value"] in INTERACTIVE]
    left = Counter((each.role, clean(each.name).casefold()) for each in main_frame(observation))
    boxes = [[each.box.x, each.box.y, each.box.width, each.box.height] for each in main_frame(observation)]
    elements: dict[str, list[str]] = {}
    for node in theirs:
        key = (node["role"]["value"], name_of(node).casefold())
        if left[key]:
            left[key] -= 1
        else:
            elements.setdefault(await _why(session, node, boxes), []).append(f"{key[0]} '{name_of(node)[:40]}'")
    texts = {name_of(node): node for node in nodes if node["role"]["value"] == "StaticText" and words(name_of(node))}
    lost: dict[str, list[str]] = {}
    for text in missing_texts(texts, render(observation.simplified)):
        lost.setdefault(await _why(session, texts[text], []), []).append(text[:60])
    await session.detach()
    return {
        "chromium": len(theirs),
        "ours": len(observation.elements),
        "elements_missing": _counted(elements),
        "texts": len(texts),
        "texts_missing": _counted(lost),
    }


def missing_of(pages: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, int]]:
    """Return how many of Chromium's elements and texts are missing, by kind, on all pages together."""
    counts: dict[str, dict[str, int]] = {}
    for what in ("elements_missing", "texts_missing"):
        kinds = Counter[str]({UNEXPLAINED: 0})
        for page in pages:
            kinds.update({kind: found["count"] for kind, found in page[what].items()})
        counts[what] = dict(kinds)
    return counts


def main_frame(observation: PageObservation) -> list[Any]:
    """Return the elements of an observation that are in the main frame."""
    return [each for each in observation.elements if not each.candidate.action.frame]


def name_of(node: dict[str, Any]) -> str:
    """Return the name of a node of Chromium's tree."""
    return clean(str(node.get("name", {}).get("value", "")))


def words(text: str) -> str:
    r"""Return the words of a text, each between spaces.

    >>> words("Price: 12kg")
    ' price 12 kg '
    """
    found = _WORD.findall(text.casefold())
    return f" {' '.join(found)} " if found else ""


def missing_texts(texts: Iterable[str], written: str) -> list[str]:
    """Return the texts whose words do not stand next to each other in what is written.

    >>> missing_texts(["Cart (2)", "art"], "link [1] 'Cart (2)'")
    ['art']
    """
    known = words(written)
    return [text for text in texts if words(text) not in known]


async def _why(session: CDPSession, node: dict[str, Any], boxes: Sequence[list[int]]) -> str:
    """Return why a node of Chromium's tree is not shown."""
    found = await session.send("DOM.resolveNode", {"backendNodeId": node["backendDOMNodeId"]})
    call = {
        "objectId": found["object"]["objectId"],
        "functionDeclaration": _WHY,
        "arguments": [{"value": list(boxes)}],
        "returnByValue": True,
    }
    return str((await session.send("Runtime.callFunctionOn", call))["result"].get("value") or UNEXPLAINED)


def _counted(missing: dict[str, list[str]]) -> dict[str, dict[str, Any]]:
    return {kind: {"count": len(found), "examples": sorted(found)[:6]} for kind, found in sorted(missing.items())}
