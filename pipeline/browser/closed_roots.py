"""Which closed shadow roots were written into a page? No script is told, so the browser is asked for it.

A root that a script attaches is known to the in-page script, which wraps `attachShadow`. Of one that the parser made
(`<template shadowrootmode="closed">`) nobody in the page knows. So the in-page script names the elements that may hold
one (`js/roots.js`), they are described over the DevTools protocol, which sees through closed roots, and what is found
is handed to the script. From then on such a root is looked at and acted in like any other.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator, Mapping
from typing import Any

from playwright.async_api import CDPSession
from playwright.async_api import Error as PlaywrightError

from pipeline.browser.script import WAYGRAPH

log = logging.getLogger(__name__)

#: What the in-page script answers while it has elements to be asked about.
UNDISCLOSED = "undisclosed"
_GROUP = "waygraph closed roots"
_HAND_OVER = "function () { this.ownerDocument.defaultView[Symbol.for('waygraph')].disclose(this); }"


async def disclose(devtools: CDPSession) -> int:
    """Hand the closed roots of a page to its in-page script; how many there are.

    Only when one of the elements that the script suspects holds one, the whole document is described: roots may stand
    in roots, and in elements that nothing tells. Documents of frames in the same process are part of it.

    Raises
    ------
    PlaywrightError
        When the document goes away meanwhile.
    """
    try:
        suspects = await _own_values(devtools, f"{WAYGRAPH}.takeSuspects()")
        told = await asyncio.gather(*(_describe(devtools, suspect, depth=0) for suspect in suspects))
        if not any(any(closed_roots(node)) for node in told):
            return 0
        document = await devtools.send("Runtime.evaluate", {"expression": "document", "objectGroup": _GROUP})
        roots = list(closed_roots(await _describe(devtools, document["result"]["objectId"], depth=-1)))
        await asyncio.gather(*(_hand_over(devtools, root) for root in roots))
        return len(roots)
    finally:
        try:
            await devtools.send("Runtime.releaseObjectGroup", {"objectGroup": _GROUP})
        except PlaywrightError as error:
            log.debug("roots/gone %s", error)


def closed_roots(node: Mapping[str, Any]) -> Iterator[int]:
    """Backend ids of the closed shadow roots in a described node (`DOM.Node`), those in roots and frames included.

    >>> inner = {"backendNodeId": 3, "shadowRoots": [{"backendNodeId": 4, "shadowRootType": "closed"}]}
    >>> outer = {"backendNodeId": 2, "shadowRootType": "open", "children": [inner]}
    >>> list(closed_roots({"backendNodeId": 1, "shadowRoots": [outer]}))
    [4]
    """
    waiting = [node]
    while waiting:
        each = waiting.pop()
        if each.get("shadowRootType") == "closed":
            yield each["backendNodeId"]
        waiting += [*each.get("shadowRoots", ()), *each.get("children", ())]
        if "contentDocument" in each:
            waiting.append(each["contentDocument"])


async def _own_values(devtools: CDPSession, expression: str) -> list[str]:
    """Object ids of the elements of the array that an expression gives."""
    array = await devtools.send("Runtime.evaluate", {"expression": expression, "objectGroup": _GROUP})
    asked = {"objectId": array["result"]["objectId"], "ownProperties": True}
    described = await devtools.send("Runtime.getProperties", asked)
    return [each["value"]["objectId"] for each in described["result"] if each["name"].isdigit()]


async def _describe(devtools: CDPSession, object_id: str, *, depth: int) -> dict[str, Any]:
    asked = {"objectId": object_id, "depth": depth, "pierce": depth != 0}
    node: dict[str, Any] = (await devtools.send("DOM.describeNode", asked))["node"]
    return node


async def _hand_over(devtools: CDPSession, backend_node_id: int) -> None:
    # Resolved in the main world of its document, where the in-page script lives.
    root = await devtools.send("DOM.resolveNode", {"backendNodeId": backend_node_id, "objectGroup": _GROUP})
    call = {"objectId": root["object"]["objectId"], "functionDeclaration": _HAND_OVER}
    await devtools.send("Runtime.callFunctionOn", call)
