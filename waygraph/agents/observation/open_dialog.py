"""A JavaScript dialog that waits for an answer, as an observation: its page shows and does nothing until then."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Self

from waygraph.core.text import replace_surrogates, shortened
from waygraph.index.graph import node_id
from waygraph.pipeline.browser.page.snapshot import OutlineNode, Snapshot

_MAX_TEXT = 500


@dataclass(frozen=True, slots=True)
class OpenDialog:
    """A dialog. Its texts come from the page.

    Attributes
    ----------
    kind
        `confirm` or `prompt`, as Playwright names it.
    message
        What it asks, in one line.
    default
        Of a prompt: the text that it proposes.
    """

    kind: str
    message: str
    default: str = ""

    @classmethod
    def of(cls, kind: str, message: str, default: str) -> Self:
        """Describe a dialog of the browser, its texts as one line each and of limited length."""
        return cls(kind, _one_line(message), _one_line(default))

    def snapshot(self, url: str, title: str) -> Snapshot:
        """Return what a page shows while the dialog is open: the dialog, and nothing that could be acted on.

        Parameters
        ----------
        url
            URL of the page.
        title
            Title of the page; empty: it is not known.

        Returns
        -------
        Snapshot
            The same for the same dialog on the same page.
        """
        structure = (hashlib.md5(str(self).encode()).hexdigest(),)
        states = (("kind", self.kind), *((("value", self.default),) if self.default else ()))
        return Snapshot(
            id=node_id(structure, url),
            url=url,
            raw_url=url,
            title=title,
            content_type="text/html",
            status=0,
            structure=structure,
            candidates=(),
            segments=(),
            capped=False,
            opened=0,
            outline=(OutlineNode(0, "alertdialog", self.message, states),),
        )

    def __str__(self) -> str:
        """Return kind and message."""
        return f"{self.kind}: {self.message}"


def _one_line(text: str) -> str:
    return shortened(" ".join(replace_surrogates(text).split()), _MAX_TEXT)
