"""The settings that shape the result of an exploration, and how a site sees its visitor."""

from __future__ import annotations

from typing import Any

from waygraph.core.settings import ExploreSettings

#: Settings that shape neither graph nor snapshots, or must not be stored.
_RUN_SETTINGS = {
    "workers",
    "max_seconds",
    "max_bytes",
    "resume",
    "headers",
    "basic_auth",
    "proxy",
    "contact",
    "storage_state",
}


def shaping(explore: ExploreSettings) -> dict[str, Any]:
    """Return the settings that shape the result of an exploration, as plain JSON without secrets."""
    return explore.model_dump(mode="json", exclude=_RUN_SETTINGS)


def visitor(explore: ExploreSettings) -> dict[str, Any]:
    """Return how the site sees the visitor, without secrets: `session`, `basic_auth`, lower-case `headers`."""
    return {
        "session": explore.storage_state is not None,
        "basic_auth": bool(explore.basic_auth.get_secret_value()),
        "headers": sorted(map(str.lower, explore.headers)),
    }
