"""Removal of secrets (passwords, tokens, sessions) from everything that is stored, published or logged."""

from __future__ import annotations

import html
import json
import logging
import re
from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import quote, urlsplit

from msgspec import structs

from waygraph.core.settings import ExploreSettings
from waygraph.core.urls import MASK, SECRET_PARAMETERS, mask_secrets
from waygraph.index.graph import (
    Action,
    BlockedRequest,
    Edge,
    InteractionGraph,
    Lead,
    Node,
    Observation,
    Segment,
    Tool,
    tool_id,
)
from waygraph.pipeline.browser.page.snapshot import PageTool, Snapshot
from waygraph.pipeline.browser.storage.secret_values import secret_values
from waygraph.pipeline.browser.storage.session_file import SessionState
from waygraph.pipeline.explore.records.capture import Failure, SiteCapture, Skip
from waygraph.pipeline.explore.records.element_outcome import ElementOutcome

#: Characters of the shortest stored value that is treated as a secret. Shorter values ("1", "en-US") are in every page
#: and protect nothing.
_MIN_SECRET_LENGTH = 8
_INPUT = re.compile(r"<input\b[^>]*>", re.IGNORECASE)
_IS_PASSWORD = re.compile(r"""\stype\s*=\s*["']?password\b""", re.IGNORECASE)
_VALUE = re.compile(r"""(\svalue\s*=\s*)(?:"[^"]*"|'[^']*'|[^\s>"']+)""", re.IGNORECASE)
_NAMES = "|".join(re.escape(name).replace(r"\*", "[A-Za-z]*") for name in SECRET_PARAMETERS)
#: A query parameter in a document, where URLs are relative and "&" may be written "&amp;". The look-ahead rejects other
#: text quickly: documents are large, and scripts have a ";" in every line.
_PAIR = re.compile(rf"""([?&;](?:amp;)?(?=[\w-]+=)(?:{_NAMES})=)[^&"'\s<>#\\]+""", re.IGNORECASE)
_URL = re.compile(r"https?://[^\s\"'<>]*[^\s\"'<>:,.;)]")


@dataclass(frozen=True, slots=True)
class Redactor:
    """Replacement of known secrets in texts, and of the values of secret parameters in URLs.

    Attributes
    ----------
    secrets
        Exact strings that are replaced wherever they occur, the longest first.
    """

    secrets: tuple[str, ...] = ()

    @classmethod
    def from_settings(
        cls, explore: ExploreSettings, given: SessionState | None = None, held: SessionState | None = None
    ) -> Redactor:
        """Return a redactor for the secrets of the settings and of a user's session.

        Parameters
        ----------
        explore
            Settings with passwords, headers and the proxy.
        given
            The user's session; None without one.
        held
            What became of it when the start page was loaded: sites replace tokens. None: it is the same.

        Returns
        -------
        Redactor
            Replaces the secrets as they are, percent-encoded, and escaped for HTML.
        """
        secrets: set[str] = set()
        if pair := explore.basic_auth.get_secret_value():
            secrets |= {pair.partition(":")[2], pair, b64encode(pair.encode()).decode()}
        for value in explore.headers.values():
            plain = value.get_secret_value()
            # Of "Bearer <token>", the token alone is a secret too.
            secrets |= {plain, plain.rpartition(" ")[2]}
        if proxy := explore.proxy.get_secret_value():
            secrets.add(urlsplit(proxy).password or "")
        values = {*secret_values(given, of_user=True), *secret_values(held, of_user=False)}
        secrets |= {value for value in values if len(value) >= _MIN_SECRET_LENGTH and not value.isalpha()}
        forms = {form for secret in secrets if secret for form in (secret, quote(secret, safe=""), html.escape(secret))}
        return cls(tuple(sorted(forms, key=len, reverse=True)))

    def with_secrets(self, secrets: Iterable[str]) -> Redactor:
        """Return a redactor that replaces further secrets as well."""
        return replace(self, secrets=tuple(sorted({*self.secrets, *secrets}, key=len, reverse=True)))

    def secrets_in(self, snapshot: Snapshot) -> set[str]:
        """Return the known secrets that a snapshot contains."""
        if not self.secrets:
            return set()
        elements = (f"{candidate.action.name}\0{candidate.action.target}" for candidate in snapshot.candidates)
        texts = (segment.text for segment in (*snapshot.segments, *snapshot.hidden))
        links = (f"{link.name}\0{link.url}" for link in snapshot.links)
        tools = (text for tool in snapshot.tools for text in _tool_texts(tool))
        text = "\0".join((snapshot.url, snapshot.title, *texts, *elements, *links, *tools))
        return {secret for secret in self.secrets if secret in text}

    def text(self, text: str) -> str:
        """Return a text without the known secrets.

        >>> Redactor(("hunter22",)).text("my password is hunter22")
        'my password is ***'
        """
        for secret in self.secrets:
            if secret in text:
                text = text.replace(secret, MASK)
        return text

    def url(self, url: str) -> str:
        """Return a URL without the known secrets, and without the values of parameters with secret names."""
        return mask_secrets(self.text(url))

    def message(self, text: str) -> str:
        """Return a text that may contain absolute URLs, without the secrets in it and in the URLs."""
        return _URL.sub(lambda match: mask_secrets(match.group()), self.text(text))

    def dom(self, document: str) -> str:
        """Return HTML without secrets and without the values of password fields."""
        return _INPUT.sub(_without_password, self.document(document))

    def document(self, text: str) -> str:
        """Return a text that may contain relative URLs (an accessibility snapshot, a script), without secrets."""
        return _PAIR.sub(rf"\1{MASK}", self.text(text))

    def is_public(self, text: str) -> bool:
        """Return whether a text, which may contain URLs, contains no secret."""
        return self.document(text) == text and self.message(text) == text

    def action(self, action: Action) -> Action:
        """Return an action without secrets.

        A target that contains a secret is dropped: role, name and XPath identify the link as well.
        """
        target = "" if self.url(action.target) != action.target else action.target
        redacted: Action = structs.replace(action, target=target, url=self.url(action.url), name=self.text(action.name))
        return redacted

    def node(self, node: Node) -> Node:
        """Return a state without secrets. A URL that contained one loads another page, so it is not addressable."""
        url, address = self.url(node.url), self.url(node.address)
        is_whole = self.url(node.load_url) == node.load_url
        title, addressable = self.text(node.title), node.addressable and is_whole
        return replace(node, url=url, address=address, title=title, addressable=addressable)

    def edge(self, edge: Edge) -> Edge:
        """Return an edge without secrets."""
        return replace(
            edge,
            action=self.action(edge.action),
            openers=tuple(self.action(opener) for opener in edge.openers),
            blocked=tuple(self.blocked(request) for request in edge.blocked),
            dialogs=tuple(self.message(dialog) for dialog in edge.dialogs),
        )

    def blocked(self, request: BlockedRequest) -> BlockedRequest:
        """Return a blocked request without secrets."""
        return replace(request, url=self.url(request.url))

    def skip(self, skip: Skip) -> Skip:
        """Return the record of a skipped element without secrets."""
        return replace(
            skip,
            element=self.message(skip.element),
            detail=self.message(skip.detail),
            target=self.url(skip.target),
        )

    def failure(self, failure: Failure) -> Failure:
        """Return the record of a failure without secrets."""
        return replace(failure, action=self.message(failure.action), reason=self.message(failure.reason))

    def element_outcome(self, outcome: ElementOutcome) -> ElementOutcome:
        """Return the outcome of an element without secrets."""
        return replace(
            outcome,
            element=self.message(outcome.element),
            reason=self.message(outcome.reason),
            detail=self.message(outcome.detail),
            target=self.url(outcome.target),
        )

    def observation(self, observation: Observation) -> Observation:
        """Return an observation of a state without secrets."""
        return replace(
            observation,
            url=self.url(observation.url),
            title=self.text(observation.title),
            segments=tuple(Segment(self.text(s.text), s.role, s.box) for s in observation.segments),
        )

    def lead(self, lead: Lead) -> Lead:
        """Return a lead without secrets. Leads whose URLs contain a secret are not passed to this method."""
        return replace(
            lead,
            names=tuple(map(self.text, lead.names)),
            heading=self.text(lead.heading),
            description=self.text(lead.description),
            action=self.action(lead.action),
        )

    def tool(self, tool: Tool) -> Tool:
        """Return a tool without secrets; its id is that of what is left."""
        redacted = replace(
            tool,
            name=self.text(tool.name),
            title=self.message(tool.title),
            description=self.message(tool.description),
            schema=self._schema(tool.schema),
            element=tool.element and self.action(tool.element),
            frame=self.url(tool.frame),
            target=self.url(tool.target),
        )
        return replace(redacted, id=tool_id(redacted))

    def _schema(self, value: Any) -> Any:  # noqa: ANN401 - JSON
        if isinstance(value, str):
            return self.message(value)
        if isinstance(value, Mapping):
            return {self.message(name): self._schema(inner) for name, inner in value.items()}
        return [self._schema(inner) for inner in value] if isinstance(value, list) else value

    def site(self, capture: SiteCapture) -> SiteCapture:
        """Return the capture of a site without secrets, ready to be published."""
        graph = InteractionGraph(
            map(self.node, capture.graph.nodes.values()),
            (self.edge(edge) for edge in capture.graph.edges),
        )
        observations = {node_id: self.observation(each) for node_id, each in capture.observations.items()}
        report = replace(
            capture.report,
            start_url=self.url(capture.report.start_url),
            skips=tuple(map(self.skip, capture.report.skips)),
            failures=tuple(map(self.failure, capture.report.failures)),
            advice=tuple(map(self.message, capture.report.advice)),
            sent_by_visits=tuple(map(self.message, capture.report.sent_by_visits)),
            over_budget=tuple(map(self.url, capture.report.over_budget)),
        )
        start_url = self.url(capture.start_url)
        tools: dict[str, Tool] = {}
        for tool in map(self.tool, capture.tools.values()):
            # Without their secrets, two tools may be one.
            states = (*tools[tool.id].states, *tool.states) if tool.id in tools else tool.states
            tools[tool.id] = replace(tool, states=tuple(dict.fromkeys(states)))
        merges = {merged: replace(m, url=self.url(m.url)) for merged, m in capture.recognition.merges.items()}
        return replace(
            capture,
            start_url=start_url,
            graph=graph,
            observations=observations,
            report=report,
            recognition=replace(capture.recognition, merges=merges),
            leads={
                lead_id: self.lead(lead)
                for lead_id, lead in capture.leads.items()
                if self.url(lead.url) == lead.url and self.url(lead.load_url) == lead.load_url
            },
            tools=tools,
        )


class RedactingFilter(logging.Filter):
    """Logging filter that removes secrets from every record; add it to a handler.

    Parameters
    ----------
    redactor
        Replaces the secrets.
    """

    def __init__(self, redactor: Redactor) -> None:
        super().__init__()
        self._redactor = redactor

    def filter(self, record: logging.LogRecord) -> bool:
        """Remove secrets from the record's message and traceback, and keep the record."""
        record.msg, record.args = self._redactor.message(record.getMessage()), ()
        if record.exc_info and not record.exc_text:
            # Formatters write this text, if it is set, in place of the exception and its message.
            record.exc_text = logging.Formatter().formatException(record.exc_info)
        if record.exc_text:
            record.exc_text = self._redactor.message(record.exc_text)
        return True


@contextmanager
def redacted_logs(redactor: Redactor) -> Iterator[None]:
    """Remove secrets from the log records of this process inside the block, for all handlers that exist now."""
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


def _tool_texts(tool: PageTool) -> Iterator[str]:
    """Yield the texts of a tool, those of its schema as they are without the escapes of JSON."""
    yield from (tool.name, tool.title, tool.description, tool.target, tool.frame)
    open_values = [json.loads(tool.schema)]
    while open_values:
        value = open_values.pop()
        if isinstance(value, str):
            yield value
        elif isinstance(value, dict):
            open_values += [*value, *value.values()]
        elif isinstance(value, list):
            open_values += value


def _without_password(match: re.Match[str]) -> str:
    tag = match.group()
    return _VALUE.sub(rf'\1"{MASK}"', tag) if _IS_PASSWORD.search(tag) else tag
