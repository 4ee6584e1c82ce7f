"""Tips by site: what the person who runs tasks tells an agent about each site."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

from pydantic import Field, RootModel

from waygraph.core.yaml_file import read_yaml_file

#: Key of the tips for tasks on any site.
ALL_SITES = "all"


class SiteTips(RootModel[dict[str, list[Annotated[str, Field(min_length=1, max_length=2_000)]]]]):
    """Lines by name of a site: the name in the task file, or the host; `all` for tasks on any site.

    Examples
    --------
    >>> tips = SiteTips({"shopping": ["Prices include tax."], "all": ["Calculate step by step."]})
    >>> print(tips.text(["shopping"]))
    - Calculate step by step.
    - Prices include tax.
    """

    def text(self, sites: Iterable[str]) -> str:
        """Return the tips for a task on some sites, as a list; empty without any."""
        lines = [line for name in dict.fromkeys((ALL_SITES, *sites)) for line in self.root.get(name, ())]
        return "\n".join(f"- {line}" for line in lines)


def read_tips(path: Path | None) -> SiteTips:
    """Return the tips of a YAML file that maps sites to lists of lines; none without a file."""
    if path is None:
        return SiteTips({})
    return read_yaml_file(path, SiteTips, what="tips file", hint="Write a list of lines below each site, or below all.")
