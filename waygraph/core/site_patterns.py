"""Patterns that say which sites an entry of a rules file applies to: a glob over site keys, or a placeholder."""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase
from pathlib import Path

from waygraph.core.errors import InvalidInput
from waygraph.core.urls import parse_start_url, site_key


def matches_site(site: str, pattern: str, placeholders: Mapping[str, str], rules: Path) -> bool:
    """Return whether an entry with `pattern` as its host applies to `site`.

    Parameters
    ----------
    site
        Key of the site.
    pattern
        Glob over site keys, or a placeholder such as `__SHOP__`.
    placeholders
        URL of each placeholder `__NAME__`, as the rules file defines them.
    rules
        Path of the rules file, for error messages.

    Returns
    -------
    bool
        Whether the entry applies.

    Raises
    ------
    InvalidInput
        If the file does not define the placeholder, or defines it with something that is not a URL.

    Examples
    --------
    >>> matches_site("a.example:8080", "__SHOP__", {"__SHOP__": "http://a.example:8080/en"}, Path("rules.yaml"))
    True
    """
    if pattern.startswith("__") and pattern.endswith("__"):
        if pattern not in placeholders:
            raise InvalidInput(
                f"The rules file '{rules}' does not define the placeholder {pattern}.",
                hint="Add its URL under 'placeholders'.",
            )
        return site == site_key(parse_start_url(placeholders[pattern]))
    return fnmatchcase(site, pattern)
