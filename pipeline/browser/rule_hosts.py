"""Which sites does an entry of the user's rules file speak of? A glob over site keys, or a placeholder of the file."""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase
from pathlib import Path

from index.graph import parse_start_url, site_key
from waygraph.errors import InvalidInput


def speaks_of(site: str, host: str, placeholders: Mapping[str, str], rules: Path) -> bool:
    """Whether an entry for `host` is one for `site`.

    Parameters
    ----------
    placeholders : what the file says stands for `__NAME__`.
    rules : the file.

    Raises
    ------
    InvalidInput
        When the host is a placeholder for which nothing stands, or no URL.

    >>> speaks_of("a.example:8080", "__SHOP__", {"__SHOP__": "http://a.example:8080/en"}, Path("rules.yaml"))
    True
    """
    if host.startswith("__") and host.endswith("__"):
        if host not in placeholders:
            raise InvalidInput(
                f"The rules file '{rules}' does not say what stands for {host}.", hint="Add it: placeholders."
            )
        return site == site_key(parse_start_url(placeholders[host]))
    return fnmatchcase(site, host)
