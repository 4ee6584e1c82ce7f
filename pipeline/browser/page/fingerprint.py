"""Script that computes the structure of a page, for callers without the SDK in any language."""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files

from waygraph.core.settings import BrowserSettings, ExploreSettings
from waygraph.pipeline.browser.page.script import page_script
from waygraph.pipeline.browser.page.snapshot import SnapshotOptions


@cache
def fingerprint_script() -> str:
    """Return a JavaScript expression whose value is an async function that returns `{"url": ..., "structure": [...]}`.

    The structure is that of `Snapshot`: sorted MD5 hashes of the exposed elements' full XPaths, through open shadow
    roots and frames of the same origin.
    """
    template = (
        files("waygraph.pipeline.browser.page").joinpath("js_fingerprint/fingerprint.js").read_text(encoding="utf-8")
    )
    options = json.dumps(SnapshotOptions.from_settings(BrowserSettings(), ExploreSettings()).to_js())
    return template.replace("/*PAGE_SCRIPT*/", page_script()).replace("/*OPTIONS*/", options)
