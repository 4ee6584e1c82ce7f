"""What is the script that looks at pages from inside? The parts in `js/`, put together."""

from __future__ import annotations

import hashlib
from functools import cache
from importlib.resources import files

#: What the script leaves behind in a document.
WAYGRAPH = "window[Symbol.for('waygraph')]"

#: The parts of the in-page script in `js/`, in an order in which each finds what it needs while it is loaded.
SCRIPT_PARTS = (
    "natives", "activity", "timers", "animation", "dialogs", "tabs", "frames", "settle", "drawing", "hash", "names",
    "exposure", "hover", "handlers", "workers", "declared", "kinds", "pass", "banner", "roots", "digest", "lists",
    "snapshot", "find", "api",
)  # fmt: skip


@cache
def page_script() -> str:
    """The script that every snapshotted document runs before its own scripts (or late, in a page that is not ours).

    All parts share one function scope, which leaves nothing behind but `window[Symbol.for("waygraph")]`. Running it
    twice does nothing.
    """
    folder = files("pipeline.browser").joinpath("js")
    parts = "\n".join(folder.joinpath(f"{part}.js").read_text(encoding="utf-8") for part in SCRIPT_PARTS)
    return f"""(() => {{
"use strict";
const KEY = Symbol.for("waygraph");
if (window[KEY]) return;
const {{ Array, Map, Math, Number, Object, Promise, Set, String, URL, WeakMap, WeakSet }} = window;
{parts}
}})();"""


@cache
def page_script_hash() -> str:
    """Names the script: looks of two different ones cannot be compared."""
    return hashlib.sha256(page_script().encode()).hexdigest()
