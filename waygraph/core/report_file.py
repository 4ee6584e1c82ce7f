"""One HTML file that shows a report: its content as JSON, images as data URLs, and the built page that draws both.

The page is built from `serve/ui/src/report/` with the components of the service's page. The file needs nothing else: it
opens from disk, requests nothing, and its policy forbids everything but the page's own script and styles, which it
names by their hashes. Texts of sites are data that the script inserts as text.
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from importlib import resources
from typing import Any, Literal

from waygraph.core.text import replace_surrogates

#: The built page. `make ui` writes it.
TEMPLATE = "report_template.html"
#: Where the content stands in the template.
PLACE = "<!--content-->"
#: Changes when a reader of an older content would misread a newer one.
VERSION = 1

ReportKind = Literal["site", "run", "changes", "agents", "repeats"]


@dataclass(frozen=True, slots=True)
class ReportFile:
    """A report that is complete in itself.

    Attributes
    ----------
    kind
        What it is about: decides which view draws it.
    title
        Title of the document.
    content
        What the view shows, as JSON values; `serve/ui/src/report/` describes the fields of each kind.
    images
        JPEG images by the key that the content refers to them with.
    made
        When it was made (ISO 8601, UTC).
    """

    kind: ReportKind
    title: str
    content: Mapping[str, Any]
    images: Mapping[str, bytes] = field(default_factory=dict)
    made: str = field(default_factory=lambda: datetime.now(UTC).isoformat(timespec="seconds"))

    def html(self) -> str:
        """Return the HTML document."""
        document = {
            "format": "waygraph-report",
            "version": VERSION,
            "kind": self.kind,
            "title": self.title,
            "made": self.made,
            "content": self.content,
            "images": {key: _data_url(content) for key, content in self.images.items()},
        }
        before, after = _template()
        return f"{before}{_inert_json(document)}{after}"


def size_in_report(value: Any) -> int:  # noqa: ANN401 - a JSON value
    """Return the number of bytes that a JSON value takes in a report."""
    return len(_inert_json(value).encode())


def _inert_json(value: Any) -> str:  # noqa: ANN401 - a JSON value
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    # Without `<`, nothing in the JSON ends or opens an element.
    return replace_surrogates(text).replace("<", "\\u003c")


@cache
def _template() -> tuple[str, str]:
    text = resources.files("waygraph.core").joinpath(TEMPLATE).read_text(encoding="utf-8")
    before, found, after = text.partition(PLACE)
    if not found:
        raise ValueError(f"{TEMPLATE} has no place for the content; run: make ui")
    return before, after


def _data_url(jpeg: bytes) -> str:
    return f"data:image/jpeg;base64,{b64encode(jpeg).decode()}"
