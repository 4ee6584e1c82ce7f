"""How does a page that is not walked by the SDK tell its structure? A script for callers in any language."""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files

from pipeline.browser.script import page_script
from pipeline.browser.snapshot import Lens
from waygraph.settings import BrowserSettings, ExploreSettings


@cache
def fingerprint_script() -> str:
    """JavaScript: an expression whose value is an async function that returns `{"url": ..., "structure": [...]}`.

    The structure is that of `Snapshot`: sorted MD5 hashes of the exposed elements' full XPaths, through open shadow
    roots and frames of the same origin.
    """
    template = files("pipeline.browser").joinpath("js_fingerprint/fingerprint.js").read_text(encoding="utf-8")
    options = json.dumps(Lens.of(BrowserSettings(), ExploreSettings()).to_js())
    return template.replace("/*PAGE_SCRIPT*/", page_script()).replace("/*OPTIONS*/", options)
