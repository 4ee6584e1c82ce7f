"""Reasons why the egress proxy could not connect to a host."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from waygraph.pipeline.browser.egress.addresses import NameUnresolved


class ConnectionProblemKind(StrEnum):
    """Why a connection was not made."""

    NOT_PUBLIC = "not_public"
    """The address is not public and the user did not name the host."""
    NAME_UNRESOLVED = "name_unresolved"
    """DNS has no address for the name."""
    TIMED_OUT = "timed_out"
    """The host does not answer."""
    CONNECTION_REFUSED = "connection_refused"
    """The host refuses the connection."""
    OTHER = "other"
    """Another error of the operating system or of the user's proxy."""


@dataclass(frozen=True, slots=True)
class ConnectionProblem:
    """Why the proxy could not connect to a host the last time.

    Attributes
    ----------
    kind
        The kind that control flow uses.
    text
        The reason for people, as the end of a sentence about the host: "it does not answer".
    """

    kind: ConnectionProblemKind
    text: str

    @property
    def is_lasting(self) -> bool:
        """Whether the next attempt ends the same."""
        return self.kind in {ConnectionProblemKind.NOT_PUBLIC, ConnectionProblemKind.NAME_UNRESOLVED}

    @classmethod
    def not_public(cls, reason: str) -> ConnectionProblem:
        """Build the problem of an address that was refused for `reason`."""
        return cls(ConnectionProblemKind.NOT_PUBLIC, f"{reason}, which may only be visited when you name the host")

    @classmethod
    def of(cls, error: Exception) -> ConnectionProblem:
        """Classify the error of a connection attempt."""
        if isinstance(error, NameUnresolved):
            return cls(ConnectionProblemKind.NAME_UNRESOLVED, "its name cannot be resolved (DNS)")
        if isinstance(error, TimeoutError):
            return TIMED_OUT
        if isinstance(error, ConnectionRefusedError):
            return cls(ConnectionProblemKind.CONNECTION_REFUSED, "it refuses the connection")
        return cls(ConnectionProblemKind.OTHER, f"it cannot be connected to ({error})")

    def __str__(self) -> str:
        return self.text


TIMED_OUT = ConnectionProblem(ConnectionProblemKind.TIMED_OUT, "it does not answer")
