"""Must a request be stopped? One answer for everything that asks: DevTools sessions, page scripts, the egress proxy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

from pipeline.browser.guard.reads import Sent
from pipeline.browser.guard.rules import GuardRules

#: `strict` stops every request but GET, HEAD, OPTIONS and every WebSocket message, `guard` lets reads through that its
#: rules know, `observe` stops nothing and records what `guard` would have stopped.
GuardMode = Literal["strict", "guard", "observe"]


@dataclass(frozen=True, slots=True)
class ActsOnGet:
    """Addresses that act when they are asked for, whatever the method: `/logout`.

    Attributes
    ----------
    says : whether an address does.
    globs : patterns of the DevTools protocol (`*`, `?`) that such addresses match, and few others: the requests for
        pictures, scripts and the like that are worth asking about.
    """

    says: Callable[[str], bool]
    globs: tuple[str, ...] = ()


NOTHING_ACTS = ActsOnGet(lambda _: False)


@dataclass(frozen=True, slots=True)
class Judge:
    """What may change something at a server, under one mode and one set of rules."""

    mode: GuardMode = "guard"
    rules: GuardRules = field(default_factory=GuardRules)
    acts: ActsOnGet = NOTHING_ACTS

    @property
    def stops(self) -> bool:
        """Whether what may change something is stopped, not only recorded."""
        return self.mode != "observe"

    def may_change(self, sent: Sent, *, document: bool = False, shown: bool = False) -> bool:
        """Whether a request could change something.

        Parameters
        ----------
        document : it asks for a document; when it is no GET, a form was sent.
        shown : the document is a page's own, so that its address was judged before.
        """
        if not shown and self.acts.says(sent.url):
            return True
        if not self.rules.changes(sent.method, sent.url, sent.headers):
            return False
        return self.mode == "strict" or self.rules.why_read(sent, document=document) is None

    def message_may_change(self, url: str, text: str | None) -> bool:
        """Whether a WebSocket message could; binary ones (no `text`) always."""
        return self.mode == "strict" or text is None or self.rules.why_message(url, text) is None
