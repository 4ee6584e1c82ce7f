"""Disclosure of closed shadow roots to the in-page script, over the DevTools protocol.

The in-page script knows the roots that scripts attach, because it wraps `attachShadow`. No script in the page can reach
a root that the parser made (`<template shadowrootmode="closed">`). Therefore the in-page script reports the elements
that may have one (`js/roots.js`), the DevTools protocol, which sees closed roots, describes these elements, and the
roots found are passed to the script. From then on snapshots and actions treat such a root like any other.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator, Mapping
from typing import Any

from playwright.async_api import CDPSession
from playwright.async_api import Error as PlaywrightError

from waygraph.pipeline.browser.page.script import WAYGRAPH

log = logging.getLogger(__name__)

#: Result of the in-page script while it has elements to check for closed roots.
UNDISCLOSED_ROOTS = "undisclosed"
_GROUP = "waygraph closed roots"
_DISCLOSE = "function () { this.ownerDocument.defaultView['\\0waygraph'].disclose(this); }"


async def disclose(devtools: CDPSession) -> int:
    """Pass the closed roots of a page to its in-page script.

    The whole document is described only if one of the elements that the script suspects has a closed root: roots may be
    inside other roots, and inside elements that the script cannot suspect. The description includes documents of frames
    in the same process.

    Parameters
    ----------
    devtools
        A DevTools session of the page.

    Returns
    -------
    int
        The number of roots.

    Raises
    ------
    PlaywrightError
        If the document goes away meanwhile.
    """
    try:
        suspects = await _evaluate_array(devtools, f"{WAYGRAPH}.takeSuspects()")
        nodes = await asyncio.gather(*(_describe(devtools, suspect, depth=0) for suspect in suspects))
        if not any(any(closed_roots(node)) for node in nodes):
            return 0
        document = await devtools.send("Runtime.evaluate", {"expression": "document", "objectGroup": _GROUP})
        roots = list(closed_roots(await _describe(devtools, document["result"]["objectId"], depth=-1)))
        await asyncio.gather(*(_disclose_root(devtools, root) for root in roots))
        return len(roots)
    finally:
        try:
            await devtools.send("Runtime.releaseObjectGroup", {"objectGroup": _GROUP})
        except PlaywrightError as error:
            log.debug("roots/gone %s", error)


def closed_roots(node: Mapping[str, Any]) -> Iterator[int]:
    """Yield the backend ids of all closed shadow roots in a described node (`DOM.Node`), also in roots and frames.

    >>> inner = {"backendNodeId": 3, "shadowRoots": [{"backendNodeId": 4, "shadowRootType": "closed"}]}
    >>> outer = {"backendNodeId": 2, "shadowRootType": "open", "children": [inner]}
    >>> list(closed_roots({"backendNodeId": 1, "shadowRoots": [outer]}))
    [4]
    """
    pending = [node]
    while pending:
        each = pending.pop()
        if each.get("shadowRootType") == "closed":
            yield each["backendNodeId"]
        pending += [*each.get("shadowRoots", ()), *each.get("children", ())]
        if "contentDocument" in each:
            pending.append(each["contentDocument"])


async def _evaluate_array(devtools: CDPSession, expression: str) -> list[str]:
    """Return the object ids of the elements of an array."""
    array = await devtools.send("Runtime.evaluate", {"expression": expression, "objectGroup": _GROUP})
    parameters = {"objectId": array["result"]["objectId"], "ownProperties": True}
    described = await devtools.send("Runtime.getProperties", parameters)
    return [each["value"]["objectId"] for each in described["result"] if each["name"].isdigit()]


async def _describe(devtools: CDPSession, object_id: str, *, depth: int) -> dict[str, Any]:
    parameters = {"objectId": object_id, "depth": depth, "pierce": depth != 0}
    node: dict[str, Any] = (await devtools.send("DOM.describeNode", parameters))["node"]
    return node


async def _disclose_root(devtools: CDPSession, backend_node_id: int) -> None:
    # Resolved in the main world of its document, where the in-page script runs.
    root = await devtools.send("DOM.resolveNode", {"backendNodeId": backend_node_id, "objectGroup": _GROUP})
    call = {"objectId": root["object"]["objectId"], "functionDeclaration": _DISCLOSE}
    await devtools.send("Runtime.callFunctionOn", call)
