"""What does a published version say about itself, and which version of a site is the current one?"""

from __future__ import annotations

import datetime as dt
import json
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from index.graph import UrlPolicy
from waygraph.errors import InvalidInput, NewerSchema, StoreError

#: Raised when a reader of an older version could misread what is written.
SCHEMA = 1

_SITE_KEY = re.compile(
    r"(?:\[[0-9a-f:.]{2,45}\]|[a-z0-9_](?:[a-z0-9_-]|\.(?!\.)){0,251}[a-z0-9_]|[a-z0-9_])(?::\d{1,5})?"
)


def is_site_key(text: str) -> bool:
    """Whether `text` is a host with an optional port as `index.graph.site_key` gives it, and so a safe folder name."""
    return _SITE_KEY.fullmatch(text) is not None


def checked_site_key(site: str) -> str:
    """`site`, when it `is_site_key`; otherwise InvalidInput."""
    if not is_site_key(site):
        raise InvalidInput(f"'{site}' is not a site key.", hint="Site keys look like example.org or 127.0.0.1:8000.")
    return site


@dataclass(frozen=True, slots=True)
class EncoderInfo:
    """Which encoder made the vectors of a version, and the site context it used (see `pipeline.encode.protocol`)."""

    name: str
    dim: int
    fingerprint: str
    context: dict[str, Any] = field(default_factory=dict)


class _Document(BaseModel):
    # Unknown keys are ignored: a newer writer that adds one does not raise the schema number.
    model_config = ConfigDict(frozen=True, extra="ignore", populate_by_name=True, use_attribute_docstrings=True)

    schema_number: int = Field(SCHEMA, alias="schema")
    """Schema of the file."""

    @classmethod
    def from_bytes(cls, content: bytes, path: str) -> Self:
        """Parse a file of the store; `path` is for the message of the StoreError that a bad one raises."""
        try:
            document = json.loads(content)
            check_schema(document, path)
            return cls.model_validate(document)
        except (ValueError, TypeError, ValidationError) as error:
            raise damaged(path, str(error)) from error

    def to_bytes(self) -> bytes:
        """Readable JSON; numbers that JSON does not have become null.

        Raises
        ------
        InvalidInput
            When a report or a setting holds something that is no JSON.

        """
        try:
            # ASCII: what pages said may contain lone surrogates, which UTF-8 cannot spell and JSON escapes can.
            loose = json.dumps(self.model_dump(mode="json", by_alias=True))
        except ValueError as error:
            raise InvalidInput(f"A {type(self).__name__.lower()} cannot be written as JSON: {error}.") from error
        return f"{json.dumps(json.loads(loose, parse_constant=lambda _: None), indent=1)}\n".encode()


class FileEntry(BaseModel):
    """One file of a version."""

    model_config = ConfigDict(frozen=True)

    sha256: str
    bytes: int


class Counts(BaseModel):
    """Sizes of a version."""

    model_config = ConfigDict(frozen=True, use_attribute_docstrings=True)

    states: int
    edges: int
    """Edges that were walked."""
    inherited_edges: int
    """Edges taken over from the parent state, not walked."""
    observations: int
    pages: int
    """States with vectors."""
    rows: int
    """Vectors of all states."""
    depth: int
    """Largest depth of a state."""
    merges: dict[str, int] = {}
    """Looks that were taken for a known state, by reason."""
    stood_for: int = 0
    """Pages that are no states because another one stands for them (skeleton mode)."""


class Manifest(_Document):
    """Everything about a version but its states, edges and vectors, and the hashes of the files that hold those."""

    site: str
    version: int
    created: str
    """When it was published (ISO 8601, UTC)."""
    start_url: str
    start_node_id: str
    counts: Counts
    capture: dict[str, Any]
    """The capture profile."""
    encoder: EncoderInfo
    settings: dict[str, Any]
    """The explore settings; `url_policy` reads the URL part of state identity from them."""
    report: dict[str, Any]
    """The run's account of itself."""
    partial: bool
    """The run was stopped by wall time or bytes before it was done."""
    files: dict[str, FileEntry]
    """The other files of the version by name."""

    @property
    def url_policy(self) -> UrlPolicy:
        """How URLs of this map were normalised, see `url_policy_from`."""
        return url_policy_from(self.settings)

    def age_days(self) -> float:
        """How long ago it was published."""
        return (dt.datetime.now(dt.UTC) - dt.datetime.fromisoformat(self.created)).total_seconds() / 86_400


class Head(_Document):
    """Which versions of a site are published: the one file whose replacement publishes or removes."""

    current: int | None = None
    """The version that readers get; None: the site was removed."""
    last: int = 0
    """The highest number that was ever published or used up; it never goes back, so a number never means two things."""
    versions: dict[int, str] = {}
    """SHA-256 of the manifest of every published version."""

    def with_version(self, version: int, manifest_sha256: str) -> Head:
        """The head after publishing `version`."""
        return Head(current=version, last=version, versions={**self.versions, version: manifest_sha256})

    def used_up(self, version: int) -> Head:
        """The head after which `version` cannot be published any more."""
        return Head(current=self.current, last=max(self.last, version), versions=self.versions)

    def without(self, versions: Collection[int]) -> Head:
        """The head after removing versions, none of them the current one."""
        left = {number: sha256 for number, sha256 in self.versions.items() if number not in versions}
        return Head(current=self.current, last=self.last, versions=left)

    def removed(self) -> Head:
        """The head after removing the site."""
        return Head(current=None, last=self.last)


def url_policy_from(settings: Mapping[str, Any]) -> UrlPolicy:
    """The `UrlPolicy` in a version's settings: `fragment`, `drop_parameters`, `raw` under "url_policy", or else
    `fragment`, `drop_parameters`, `raw_urls` as the explore settings name them (at the top or under "explore").
    """  # noqa: D205 - one sentence
    section = settings.get("url_policy") or settings.get("explore") or settings
    default = UrlPolicy()
    return UrlPolicy(
        fragment=section.get("fragment", default.fragment),
        drop_parameters=tuple(section.get("drop_parameters", default.drop_parameters)),
        raw=bool(section.get("raw", section.get("raw_urls", default.raw))),
    )


def check_schema(document: object, path: str) -> None:
    """Refuse a document of a newer waygraph (NewerSchema), and one without a schema number (TypeError)."""
    number = document.get("schema") if isinstance(document, dict) else None
    if not isinstance(number, int):
        raise TypeError("it has no schema number")
    if number > SCHEMA:
        raise NewerSchema(
            f"{path} has schema {number}; this waygraph reads up to {SCHEMA}.",
            hint="Upgrade waygraph, or use another store.",
        )


def damaged(path: str, what: str) -> StoreError:
    """The error for a file that is not what the store wrote."""
    return StoreError(
        f"{path} is damaged: {what}.",
        hint="Restore it from a backup, or remove the site (waygraph rm) and index it again.",
    )
