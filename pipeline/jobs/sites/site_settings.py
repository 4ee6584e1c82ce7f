"""Which settings does one site of a run have? Those of the run, and what the rules file says about this site.

    placeholders:
      __SHOPPING__: http://127.0.0.1:7770
    sites:
      - host: "__SHOPPING__"          # or a glob over the site key
        depth: 2
        max_states: 200
        max_seconds: 900
        storage_state: shop.json      # beside this file
        block:                        # see `pipeline.explore.blocklist`
          - {name: no comparing, text: compare}

Of several entries that name a site, later ones win, and their rules add up.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from pipeline.browser.rule_hosts import speaks_of
from pipeline.explore.blocklist import SITE_SETTINGS
from waygraph.errors import InvalidInput
from waygraph.rules_file import read_rules
from waygraph.settings import ExploreSettings, Settings

#: Depths by site of the paper's experiments (WebNavigator, 4.1): Map 1, CMS, Shopping and GitLab 2, Reddit 3.
WEBARENA_DEPTHS = {
    "__MAP__": 1, "__SHOPPING_ADMIN__": 2, "__SHOPPING__": 2, "__GITLAB__": 2, "__REDDIT__": 3
}  # fmt: skip
#: And of its experiment on live sites.
ONLINE_MIND2WEB_DEPTH = 1


class _Site(BaseModel):
    # The same file holds rules, which the explorer checks.
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
    sites: tuple[_Site, ...] = ()


def placeholders_of(rules: Path | None) -> dict[str, str]:
    """What a rules file says stands for `__NAME__` (InvalidInput when it cannot be read)."""
    return {} if rules is None else dict(_read(rules).placeholders)


def settings_of(settings: Settings, site: str) -> Settings:
    """The settings of one site.

    Raises
    ------
    InvalidInput
        When the rules file cannot be read, or gives the site a setting that makes no sense.

    """
    changes: dict[str, Any] = {}
    if site in settings.jobs.site_depths:
        changes["depth"] = settings.jobs.site_depths[site]
    if (rules := settings.explore.rules) is not None:
        file = _read(rules)
        for entry in file.sites:
            if speaks_of(site, entry.host, file.placeholders, rules):
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
            f"The rules file '{rules}' gives '{site}' a setting that makes no sense: "
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
    """Read once for all sites of a run, and again when it changed."""
    return read_rules(path, _File, what="rules file", hint="docs/store.md, section Lists of sites, shows the format.")
