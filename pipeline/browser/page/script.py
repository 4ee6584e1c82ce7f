"""The in-page script: the parts in `js/`, concatenated."""

from __future__ import annotations

import hashlib
import json
import re
from functools import cache
from importlib.resources import files

from playwright.async_api import BrowserContext

#: The only name that the script adds to a document. No element has such an id, and the page cannot replace a text as it
#: can replace `Symbol`.
WAYGRAPH = r"window['\0waygraph']"

#: Parts of the in-page script in `js/`, ordered so that each part finds what it needs while it is loaded.
SCRIPT_PARTS = (
    "natives", "activity", "sockets", "timers", "interest", "animation", "dialogs", "tabs", "frames", "settle",
    "waiting", "drawing", "hash", "rendering", "roles", "content", "names", "geometry", "paths", "overlays", "hover",
    "handlers", "items", "workers", "declared", "kinds", "segments", "candidates", "carousels", "pass", "outline",
    "banner", "roots", "digest", "aria", "markup", "lists", "growing", "links", "webmcp", "forms", "tools", "snapshot",
    "revert", "find", "scroll", "api",
)  # fmt: skip

#: Globals that the script uses, read once before a page's scripts can replace them. `js/natives.js` lists what it calls
#: on their prototypes.
CAPTURED = (
    "Array", "CSS", "DOMException", "Document", "DocumentFragment", "Element", "Event", "EventTarget", "Function",
    "HTMLElement", "HTMLFormElement", "HTMLSlotElement", "JSON", "Map", "Math", "MutationObserver", "Node", "Number",
    "Object", "OffscreenCanvas", "PerformanceObserver", "Proxy", "Reflect", "RegExp", "Request", "SVGElement", "Set",
    "ShadowRoot", "String", "Symbol", "TextEncoder", "TouchEvent", "UIEvent", "URL", "URLSearchParams", "Uint32Array",
    "Uint8Array",
    "WeakMap", "WeakSet", "XMLHttpRequest", "XMLSerializer", "getComputedStyle", "getSelection", "parseFloat",
    "parseInt",
)  # fmt: skip

#: Value of the script where the page has replaced functions that it needs; it does nothing there.
REPLACED = "replaced"

#: Lines that hold only a comment: `// ...`, or a whole `/** ... */`.
_COMMENT_LINES = re.compile(r"^[ \t]*(?://.*|/\*\*(?:(?!\*/)[\s\S])*\*/[ \t]*)\n", re.MULTILINE)


@cache
def page_script() -> str:
    """Return the script, which every observed document runs before its own scripts (in a caller's page later).

    All parts share one function scope, which adds only `WAYGRAPH` to the page. A second run has no effect.
    Lines that hold only comments are removed, so that they neither take time in each document nor change its hash.
    """
    folder = files("waygraph.pipeline.browser.page").joinpath("js")
    natives, *parts = (
        _COMMENT_LINES.sub("", folder.joinpath(f"{part}.js").read_text(encoding="utf-8")) for part in SCRIPT_PARTS
    )
    return f"""(() => {{
"use strict";
const {{ {", ".join(CAPTURED)} }} = window;
const KEY = "\\0waygraph";
if (window[KEY]) return;
const Promise = (async () => {{}})().constructor;
{natives}
if (!areNative([{", ".join(name for name in CAPTURED if "Observer" not in name)}])) return "{REPLACED}";
{"".join(parts)}
}})();"""


async def add_page_script(context: BrowserContext, *, guarded: bool = False, accepts_dialogs: bool = False) -> None:
    """Run the script before all others in each document of a context, so that it knows what scripts listen to.

    Parameters
    ----------
    context
        A context without pages.
    guarded
        Whether the pages belong to waygraph: dialogs are answered and new tabs are reported instead of opened.
    accepts_dialogs
        How a guarded page answers dialogs.
    """
    flags = json.dumps({"knowsListeners": True, "guarded": guarded, "acceptsDialogs": accepts_dialogs})
    await context.add_init_script(f"{page_script()}\n{WAYGRAPH} && Object.assign({WAYGRAPH}, {flags});")


@cache
def page_script_hash() -> str:
    """Return the hash of the script: snapshots by two different scripts cannot be compared."""
    return hashlib.sha256(page_script().encode()).hexdigest()
