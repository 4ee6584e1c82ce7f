"""What must never be written down? Passwords, tokens and sessions, wherever a page, a URL or a message repeats them."""

from __future__ import annotations

import html
import logging
import re
from base64 import b64encode
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import quote, urlsplit

from msgspec import structs

from index.graph import Action, BlockedRequest, Edge, InteractionGraph, Observation, Segment, mask_secrets
from index.graph.urls import MASK, SECRET_PARAMETERS
from pipeline.browser.snapshot import Snapshot
from pipeline.explore.capture import Failure, SiteCapture, Skip
from pipeline.explore.journal_records import Fate
from waygraph.settings import ExploreSettings

#: Shorter values ("1", "en-US") are in every page, and protect nothing.
_SHORTEST = 8
_INPUT = re.compile(r"<input\b[^>]*>", re.IGNORECASE)
_IS_PASSWORD = re.compile(r"""\stype\s*=\s*["']?password\b""", re.IGNORECASE)
_VALUE = re.compile(r"""(\svalue\s*=\s*)(?:"[^"]*"|'[^']*'|[^\s>"']+)""", re.IGNORECASE)
_NAMES = "|".join(re.escape(name).replace(r"\*", "[A-Za-z]*") for name in SECRET_PARAMETERS)
#: A query parameter in a document, where URLs are relative and "&" may be written "&amp;". What is no name is seen
#: at once: documents are large, and hold a ";" in every line of a script.
_PAIR = re.compile(rf"""([?&;](?:amp;)?(?=[\w-]+=)(?:{_NAMES})=)[^&"'\s<>#\\]+""", re.IGNORECASE)
_URL = re.compile(r"https?://[^\s\"'<>]*[^\s\"'<>:,.;)]")


@dataclass(frozen=True, slots=True)
class Redactor:
    """Takes known secrets out of texts, and what looks like a secret out of URLs.

    Attributes
    ----------
    secrets : exact strings that are replaced wherever they occur, the longest first.
    """

    secrets: tuple[str, ...] = ()

    @classmethod
    def of(cls, explore: ExploreSettings, storage_state: Any = None) -> Redactor:  # noqa: ANN401 - JSON of Playwright
        """The secrets of the settings, and the cookies and stored values that a user's storage state brings along."""
        found: set[str] = set()
        if pair := explore.basic_auth.get_secret_value():
            found |= {pair.partition(":")[2], pair, b64encode(pair.encode()).decode()}
        for value in explore.headers.values():
            plain = value.get_secret_value()
            # "Bearer <token>": the token alone is the secret.
            found |= {plain, plain.rpartition(" ")[2]}
        if proxy := explore.proxy.get_secret_value():
            found.add(urlsplit(proxy).password or "")
        found |= {value for value in _stored(storage_state) if len(value) >= _SHORTEST and not value.isalpha()}
        spelled = {form for secret in found if secret for form in (secret, quote(secret, safe=""), html.escape(secret))}
        return cls(tuple(sorted(spelled, key=len, reverse=True)))

    def also(self, secrets: Iterable[str]) -> Redactor:
        """The same with further secrets, as `shown_in` gave them."""
        return replace(self, secrets=tuple(sorted({*self.secrets, *secrets}, key=len, reverse=True)))

    def shown_in(self, seen: Snapshot) -> set[str]:
        """Those of its secrets that a look holds."""
        if not self.secrets:
            return set()
        named = (f"{candidate.action.name}\0{candidate.action.target}" for candidate in seen.candidates)
        text = "\0".join((seen.url, seen.title, *(segment.text for segment in seen.segments), *named))
        return {secret for secret in self.secrets if secret in text}

    def text(self, text: str) -> str:
        """A text of a page, a message, a log line, without the known secrets.

        >>> Redactor(("hunter22",)).text("my password is hunter22")
        'my password is ***'
        """
        for secret in self.secrets:
            if secret in text:
                text = text.replace(secret, MASK)
        return text

    def url(self, url: str) -> str:
        """A URL without the known secrets and without the values of parameters that are secrets by their name."""
        return mask_secrets(self.text(url))

    def message(self, text: str) -> str:
        """A text that may hold URLs."""
        return _URL.sub(lambda found: mask_secrets(found.group()), self.text(text))

    def dom(self, document: str) -> str:
        """HTML without known secrets and without what password fields were filled with."""
        return _INPUT.sub(_without_password, self.document(document))

    def document(self, text: str) -> str:
        """A text in which URLs may stand, relative ones too: an accessibility snapshot, a script."""
        return _PAIR.sub(rf"\1{MASK}", self.text(text))

    def is_public(self, text: str) -> bool:
        """Whether nothing in a text, which may hold URLs, is a secret."""
        return self.document(text) == text and self.message(text) == text

    def action(self, action: Action) -> Action:
        """An action to be kept. A link target with a secret is left out: role, name and place find the link as well."""
        target = "" if self.url(action.target) != action.target else action.target
        redacted: Action = structs.replace(action, target=target, url=self.url(action.url), name=self.text(action.name))
        return redacted

    def edge(self, edge: Edge) -> Edge:
        """An edge to be kept."""
        return replace(
            edge,
            action=self.action(edge.action),
            blocked=tuple(self.blocked(request) for request in edge.blocked),
            dialogs=tuple(self.message(dialog) for dialog in edge.dialogs),
        )

    def blocked(self, request: BlockedRequest) -> BlockedRequest:
        """A stopped request to be kept."""
        return replace(request, url=self.url(request.url))

    def skip(self, skip: Skip) -> Skip:
        """A skip to be reported."""
        return replace(
            skip,
            element=self.message(skip.element),
            detail=self.message(skip.detail),
            target=self.url(skip.target),
        )

    def failure(self, failure: Failure) -> Failure:
        """A failure to be reported."""
        return replace(failure, action=self.message(failure.action), reason=self.message(failure.reason))

    def fate(self, fate: Fate) -> Fate:
        """What became of an element, to be kept."""
        return replace(
            fate,
            element=self.message(fate.element),
            reason=self.message(fate.reason),
            detail=self.message(fate.detail),
            target=self.url(fate.target),
        )

    def observation(self, seen: Observation) -> Observation:
        """What a state looked like, to be kept."""
        return replace(
            seen,
            url=self.url(seen.url),
            title=self.text(seen.title),
            segments=tuple(Segment(self.text(s.text), s.role, s.box) for s in seen.segments),
        )

    def site(self, capture: SiteCapture) -> SiteCapture:
        """A whole site, ready to be published: its graph, what was seen, and the run's report."""
        graph = InteractionGraph(
            (
                replace(node, url=self.url(node.url), title=self.text(node.title))
                for node in capture.graph.nodes.values()
            ),
            (self.edge(edge) for edge in capture.graph.edges),
        )
        observations = {node_id: self.observation(seen) for node_id, seen in capture.observations.items()}
        report = replace(
            capture.report,
            start_url=self.url(capture.report.start_url),
            skips=tuple(map(self.skip, capture.report.skips)),
            failures=tuple(map(self.failure, capture.report.failures)),
        )
        start_url = self.url(capture.start_url)
        merges = {merged: replace(m, url=self.url(m.url)) for merged, m in capture.recognition.merges.items()}
        return replace(
            capture,
            start_url=start_url,
            graph=graph,
            observations=observations,
            report=report,
            recognition=replace(capture.recognition, merges=merges),
        )


class RedactingFilter(logging.Filter):
    """Takes secrets out of every log record that passes; add it to a handler."""

    def __init__(self, redactor: Redactor) -> None:
        super().__init__()
        self._redactor = redactor

    def filter(self, record: logging.LogRecord) -> bool:
        """Rewrite the record's message and traceback; it is always kept."""
        record.msg, record.args = self._redactor.message(record.getMessage()), ()
        if record.exc_info and not record.exc_text:
            # What is written of an exception, its message included, is this text when there is one.
            record.exc_text = logging.Formatter().formatException(record.exc_info)
        if record.exc_text:
            record.exc_text = self._redactor.message(record.exc_text)
        return True


@contextmanager
def redacted_logs(redactor: Redactor) -> Iterator[None]:
    """Keep secrets out of what this process logs meanwhile, by all handlers that loggers have now."""
    loggers = [logging.getLogger(), *(each for each in logging.root.manager.loggerDict.values())]
    handlers = {handler for each in loggers if isinstance(each, logging.Logger) for handler in each.handlers}
    if logging.lastResort is not None:
        handlers.add(logging.lastResort)
    redacting = RedactingFilter(redactor)
    for handler in handlers:
        handler.addFilter(redacting)
    try:
        yield
    finally:
        for handler in handlers:
            handler.removeFilter(redacting)


def _without_password(found: re.Match[str]) -> str:
    tag = found.group()
    return _VALUE.sub(rf'\1"{MASK}"', tag) if _IS_PASSWORD.search(tag) else tag


def _stored(state: Any) -> Iterable[str]:  # noqa: ANN401
    if not isinstance(state, dict):
        return
    for cookie in state.get("cookies", ()):
        yield str(cookie.get("value", ""))
    for origin in state.get("origins", ()):
        for item in origin.get("localStorage", ()):
            yield str(item.get("value", ""))
