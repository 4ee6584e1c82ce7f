"""Manifests of published versions, and the head that names the current version of a site."""

from __future__ import annotations

import datetime as dt
import json
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from waygraph.core.errors import InvalidInput, NewerSchema, StoreError
from waygraph.core.urls import UrlPolicy

#: Number of the store's schema; increased if a reader of an older version could misread what is written.
SCHEMA_NUMBER = 1

_SITE_KEY = re.compile(
    r"(?:\[[0-9a-f:.]{2,45}\]|[a-z0-9_](?:[a-z0-9_-]|\.(?!\.)){0,251}[a-z0-9_]|[a-z0-9_])(?::\d{1,5})?"
)


def is_site_key(text: str) -> bool:
    """Return whether `text` is a site key (host and optional port, see `site_key`), and so a safe folder name."""
    return _SITE_KEY.fullmatch(text) is not None


def validate_site_key(site: str) -> str:
    """Return `site` if it is a site key; otherwise raise InvalidInput."""
    if not is_site_key(site):
        raise InvalidInput(f"'{site}' is not a site key.", hint="Site keys look like example.org or 127.0.0.1:8000.")
    return site


@dataclass(frozen=True, slots=True)
class EncoderInfo:
    """The encoder of a version's vectors, with the site context that it used (`waygraph.pipeline.encode.protocol`)."""

    name: str
    dim: int
    fingerprint: str
    context: dict[str, Any] = field(default_factory=dict)


class _StoreDocument(BaseModel):
    # Unknown keys are ignored: a newer writer that adds one does not raise the schema number.
    model_config = ConfigDict(frozen=True, extra="ignore", populate_by_name=True, use_attribute_docstrings=True)

    schema_number: int = Field(SCHEMA_NUMBER, alias="schema")
    """Schema of the file."""

    @classmethod
    def from_bytes(cls, content: bytes, path: str) -> Self:
        """Parse a file of the store.

        Parameters
        ----------
        content
            Content of the file.
        path
            Path of the file, for error messages.

        Returns
        -------
        Self
            The document.

        Raises
        ------
        StoreError
            If the file is damaged or has a newer schema.
        """
        try:
            document = json.loads(content)
            check_schema(document, path)
            return cls.model_validate(document)
        except (ValueError, TypeError, ValidationError) as error:
            raise damaged_file(path, str(error)) from error

    def to_bytes(self) -> bytes:
        """Encode the document as readable JSON; numbers that JSON does not have become null.

        Returns
        -------
        bytes
            UTF-8 text.

        Raises
        ------
        InvalidInput
            If a report or a setting has a value that JSON cannot represent.
        """
        try:
            # ASCII: texts of pages may contain lone surrogates, which UTF-8 cannot encode and JSON can escape.
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
    """Edges copied from the parent state, not walked."""
    observations: int
    pages: int
    """States with vectors."""
    rows: int
    """Vectors of all states."""
    depth: int
    """Largest depth of a state."""
    merges: dict[str, int] = {}
    """Snapshots that were recognised as a known state, by reason."""
    stood_for: int = 0
    """Pages that are no states because another state represents them (skeleton mode)."""
    leads: int = 0
    """Known pages that were not visited."""


class Manifest(_StoreDocument):
    """Description of a version, with the hashes of the files that hold its states, edges and vectors."""

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
    """The report of the run."""
    partial: bool
    """The run was stopped by wall time or bytes before it was done."""
    files: dict[str, FileEntry]
    """The other files of the version by name."""

    @property
    def url_policy(self) -> UrlPolicy:
        """The policy by which the URLs of this map were normalised, see `url_policy_from`."""
        return url_policy_from(self.settings)

    def age_days(self) -> float:
        """Return the time since it was published, in days."""
        return (dt.datetime.now(dt.UTC) - dt.datetime.fromisoformat(self.created)).total_seconds() / 86_400


class Head(_StoreDocument):
    """The published versions of a site: the register whose replacement publishes or removes versions."""

    current: int | None = None
    """The version that readers get; None if the site was removed."""
    last: int = 0
    """The highest number ever published or given up. It never decreases, so no number is used twice."""
    versions: dict[int, str] = {}
    """By published version, the SHA-256 of its manifest."""

    def with_version(self, version: int, manifest_sha256: str) -> Head:
        """Return the head after publishing `version`."""
        return Head(current=version, last=version, versions={**self.versions, version: manifest_sha256})

    def with_used_number(self, version: int) -> Head:
        """Return the head after which the number `version` can no longer be published."""
        return Head(current=self.current, last=max(self.last, version), versions=self.versions)

    def without(self, versions: Collection[int]) -> Head:
        """Return the head after removing versions, none of them the current one."""
        left = {number: sha256 for number, sha256 in self.versions.items() if number not in versions}
        return Head(current=self.current, last=self.last, versions=left)

    def removed(self) -> Head:
        """Return the head after removing the site."""
        return Head(current=None, last=self.last)


def url_policy_from(settings: Mapping[str, Any]) -> UrlPolicy:
    """Read the `UrlPolicy` from a version's settings.

    The fields are `fragment`, `drop_parameters` and `raw` under "url_policy"; else `fragment`, `drop_parameters` and
    `raw_urls`, as the explore settings name them, under "explore" or at the top level.
    """
    section = settings.get("url_policy") or settings.get("explore") or settings
    default = UrlPolicy()
    return UrlPolicy(
        fragment=section.get("fragment", default.fragment),
        drop_parameters=tuple(section.get("drop_parameters", default.drop_parameters)),
        raw=bool(section.get("raw", section.get("raw_urls", default.raw))),
    )


def check_schema(document: object, path: str) -> None:
    """Reject a document of a newer waygraph (NewerSchema), or one without a schema number (TypeError)."""
    number = document.get("schema") if isinstance(document, dict) else None
    if not isinstance(number, int):
        raise TypeError("it has no schema number")
    if number > SCHEMA_NUMBER:
        raise NewerSchema(
            f"{path} has schema {number}; this waygraph reads up to {SCHEMA_NUMBER}.",
            hint="Upgrade waygraph, or use another store.",
        )


def damaged_file(path: str, problem: str) -> StoreError:
    """Return the error for a file that differs from what the store wrote."""
    return StoreError(
        f"{path} is damaged: {problem}.",
        hint="Restore it from a backup, or remove the site (waygraph rm) and index it again.",
    )
