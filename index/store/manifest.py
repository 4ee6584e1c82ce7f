"""Manifests of published versions, and the head that names the current version of a site."""

from __future__ import annotations

import datetime as dt
import json
import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from itertools import chain
from typing import Annotated, Any, ClassVar, Self, get_args

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator

from waygraph.core.errors import InvalidInput, NewerSchema, StoreError
from waygraph.core.urls import FragmentRule, UrlPolicy
from waygraph.index.store.names import (
    MAX_VERSION,
    Count,
    Digest,
    FileName,
    SiteKey,
    StateId,
    VersionNumber,
    is_digest,
)

#: Number of the store's schema; increased if a reader of an older version could misread what is written.
SCHEMA_NUMBER = 1

#: Largest size of a manifest or `HEAD` in bytes, and how deeply their values may be nested: the service's answers
#: contain parts of them.
MAX_DOCUMENT_BYTES, MAX_NESTING = 256 * 2**20, 64
_INTEGER_BITS = 64
#: Characters of a place in a document that an error repeats.
_SHOWN_CHARACTERS = 200


@dataclass(frozen=True, slots=True)
class EncoderInfo:
    """The encoder of a version's vectors, with the site context that it used (`waygraph.pipeline.encode.protocol`)."""

    name: str
    dim: Annotated[int, Field(ge=1, le=2**16)]
    fingerprint: str
    context: dict[str, Any] = field(default_factory=dict)


class _StoreDocument(BaseModel):
    # Unknown keys are ignored: a newer writer that adds one does not raise the schema number.
    model_config = ConfigDict(frozen=True, extra="ignore", populate_by_name=True, use_attribute_docstrings=True)

    #: `StoreError.reason` of a damaged one.
    _reason: ClassVar[str]

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
            document = _parse(content)
            check_schema(document, path)
            _check_values(document)
            return cls.model_validate(document)
        except ValidationError as error:
            raise damaged_file(path, _summary(error), reason=cls._reason) from error
        except (ValueError, TypeError, RecursionError) as error:
            raise damaged_file(path, str(error), reason=cls._reason) from error

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

    sha256: Digest
    bytes: Count


class Counts(BaseModel):
    """Sizes of a version."""

    model_config = ConfigDict(frozen=True, use_attribute_docstrings=True)

    states: Count
    edges: Count
    """Edges that were walked."""
    inherited_edges: Count
    """Edges copied from the parent state, not walked."""
    observations: Count
    pages: Count
    """States with vectors."""
    rows: Count
    """Vectors of all states."""
    depth: Count
    """Largest depth of a state."""
    merges: dict[str, Count] = {}
    """Snapshots that were recognised as a known state, by reason."""
    stood_for: Count = 0
    """Pages that are no states because another state represents them (skeleton mode)."""
    leads: Count = 0
    """Known pages that were not visited."""
    tools: Count = 0
    """Distinct tools of its states."""


def _checked_time(text: str) -> str:
    if dt.datetime.fromisoformat(text).tzinfo is None:
        raise ValueError("it has no time zone")
    return text


class Manifest(_StoreDocument):
    """Description of a version, with the hashes of the files that hold its states, edges and vectors."""

    _reason = "manifest"

    site: SiteKey
    version: VersionNumber
    created: Annotated[str, AfterValidator(_checked_time)]
    """When it was published (ISO 8601, UTC)."""
    start_url: str
    start_node_id: StateId
    title: str = ""
    """Title of the start page."""
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
    files: dict[FileName, FileEntry]
    """The other files of the version by name."""

    @model_validator(mode="after")
    def _check_nested(self) -> Self:
        """Check the parts of settings and report that readers take for granted."""
        try:
            policy = self.url_policy
        except (TypeError, AttributeError) as error:
            raise ValueError("its settings have no valid URL policy") from error
        if policy.fragment not in get_args(FragmentRule) or not all(isinstance(p, str) for p in policy.drop_parameters):
            raise ValueError("its settings have no valid URL policy")
        # A draft has tuples where a file has lists.
        parts: tuple[tuple[str, tuple[type, ...]], ...] = (("refresh", (dict,)), ("advice", (list, tuple)))
        if bad := [name for name, kinds in parts if not isinstance(self.report.get(name) or kinds[0](), kinds)]:
            raise ValueError(f"'{bad[0]}' of its report is of another type")
        for name in ("fates", "record"):
            if not (isinstance(digest := self.report.get(name) or "", str) and (not digest or is_digest(digest))):
                raise ValueError(f"its report names a blob that cannot exist under '{name}'")
        return self

    @property
    def url_policy(self) -> UrlPolicy:
        """The policy by which the URLs of this map were normalised, see `url_policy_from`."""
        return url_policy_from(self.settings)

    @property
    def explored_at(self) -> dt.datetime | None:
        """When the site was explored. None: unknown, since an older map was published again."""
        published_again = {"rollback_to", "reencoded_from", "described_from"} & self.report.keys()
        known = self.report.get("explored") or ("" if published_again else self.created)
        try:
            found = dt.datetime.fromisoformat(known)
        except (TypeError, ValueError):
            return None
        return found if found.tzinfo is not None else found.replace(tzinfo=dt.UTC)

    def age_days(self) -> float:
        """Return the time since it was published, in days."""
        return (dt.datetime.now(dt.UTC) - dt.datetime.fromisoformat(self.created)).total_seconds() / 86_400


class Head(_StoreDocument):
    """The published versions of a site: the register whose replacement publishes or removes versions."""

    _reason = "head"

    current: VersionNumber | None = None
    """The version that readers get; None if the site was removed."""
    last: Annotated[int, Field(ge=0, le=MAX_VERSION)] = 0
    """The highest number ever published or given up. It never decreases, so no number is used twice."""
    versions: dict[VersionNumber, Digest] = {}
    """By published version, the SHA-256 of its manifest."""

    @model_validator(mode="after")
    def _check_current(self) -> Self:
        if self.current is not None and self.current not in self.versions:
            raise ValueError(f"it has no version {self.current}, which it says is the current one")
        return self

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
    if not isinstance(section, Mapping):
        raise TypeError("the settings have no URL policy")
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


def _parse(content: bytes) -> object:
    if len(content) > MAX_DOCUMENT_BYTES:
        raise ValueError(f"it has more than {MAX_DOCUMENT_BYTES >> 20} MiB")
    document: object = json.loads(content)
    return document


def _check_values(document: object) -> None:
    """Reject values that answers could not contain (ValueError): too deeply nested, or numbers that are no numbers."""
    level = [document]
    for _ in range(MAX_NESTING):
        lists = [each.values() if isinstance(each, dict) else each for each in level if isinstance(each, dict | list)]
        level = list(chain.from_iterable(lists))
        if not level:
            return
        for each in level:
            if isinstance(each, float) and not math.isfinite(each):
                raise ValueError("it has a number that is not finite")
            if isinstance(each, int) and each.bit_length() > _INTEGER_BITS:
                raise ValueError("it has a number that is too large")
    raise ValueError(f"it is nested more than {MAX_NESTING} levels deep")


def _summary(error: ValidationError) -> str:
    """Return one line for the first thing that is wrong with a document."""
    first = error.errors(include_url=False, include_input=False)[0]
    # Keys are texts of the document, which may control a terminal.
    place = ascii(".".join(map(str, first["loc"])))[1:-1][:_SHOWN_CHARACTERS]
    return f"{place}: {first['msg']}" if place else str(first["msg"])


def damaged_file(path: str, problem: str, *, reason: str = "damaged") -> StoreError:
    """Return the error for a file that differs from what the store wrote."""
    error = StoreError(
        f"{path} is damaged: {problem}.",
        hint="Restore it from a backup, or remove the site (waygraph rm) and index it again.",
    )
    error.reason = reason
    return error
