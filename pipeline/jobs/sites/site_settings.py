"""Settings of one site of a run: those of the run, with the changes of the rules file.

    placeholders:
      __SHOPPING__: http://127.0.0.1:7770
    sites:
      - host: "__SHOPPING__"          # or a glob over the site key
        depth: 2
        max_states: 200
        max_seconds: 900
        storage_state: shop.json      # beside this file
        block:                        # see `waygraph.pipeline.explore.policies.blocklist`
          - {name: no comparing, text: compare}

Of several entries that match a site, later settings win and rules accumulate.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from waygraph.core.errors import InvalidInput
from waygraph.core.settings import ExploreSettings, Settings
from waygraph.core.site_patterns import matches_site
from waygraph.core.yaml_file import read_yaml_file
from waygraph.pipeline.explore.policies.blocklist import SITE_SETTINGS


class _SiteEntry(BaseModel):
    # The same file holds rules, which `BlockList` validates.
    model_config = ConfigDict(extra="ignore", frozen=True)

    host: str
    depth: int | None = None
    max_states: int | None = None
    max_activations: int | None = None
    max_seconds: float | None = None
    max_bytes: int | None = None
    storage_state: Path | None = None


class _File(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)

    placeholders: Mapping[str, str] = Field(default={})
    sites: tuple[_SiteEntry, ...] = ()


def read_placeholders(rules: Path | None) -> dict[str, str]:
    """Return the placeholders of a rules file. Raise InvalidInput if it cannot be read."""
    return {} if rules is None else dict(_read(rules).placeholders)


def settings_for_site(settings: Settings, site: str) -> Settings:
    """Return the settings of one site.

    Parameters
    ----------
    settings
        Settings of the run.
    site
        Key of the site.

    Returns
    -------
    Settings
        With the changes for this site.

    Raises
    ------
    InvalidInput
        If the rules file cannot be read, or has an invalid setting for the site.
    """
    changes: dict[str, Any] = {}
    if site in settings.jobs.site_depths:
        changes["depth"] = settings.jobs.site_depths[site]
    if (rules := settings.explore.rules) is not None:
        file = _read(rules)
        for entry in file.sites:
            if matches_site(site, entry.host, file.placeholders, rules):
                changes |= entry.model_dump(exclude_none=True, include=set(SITE_SETTINGS))
        if (state := changes.get("storage_state")) is not None:
            changes["storage_state"] = rules.parent / state
    if not changes:
        return settings
    try:
        explore = ExploreSettings.model_validate({**dict(settings.explore), **changes})
    except ValidationError as error:
        first = error.errors()[0]
        raise InvalidInput(
            f"The rules file '{rules}' gives '{site}' an invalid setting: "
            f"{'.'.join(map(str, first['loc']))}: {first['msg']}.",
            hint="docs/store.md, section Lists of sites, shows the format.",
        ) from error
    return settings.model_copy(update={"explore": explore})


def _read(path: Path) -> _File:
    try:
        return _read_state(path, path.stat().st_mtime_ns)
    except OSError as error:
        raise InvalidInput(
            f"The rules file '{path}' cannot be read: {error.strerror}.", hint="Check the path."
        ) from error


@lru_cache(8)
def _read_state(path: Path, _changed: int) -> _File:
    """Read the file once for all sites of a run, and again after a change."""
    return read_yaml_file(
        path, _File, what="rules file", hint="docs/store.md, section Lists of sites, shows the format."
    )
