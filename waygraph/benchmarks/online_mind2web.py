"""Online-Mind2Web (Xue et al. 2025, arXiv:2504.01382): the hosts of its 300 tasks, and the depth of exploration."""

from __future__ import annotations

from contextlib import AbstractContextManager
from importlib.resources import as_file, files
from pathlib import Path

#: Name under which the site list is given on the command line.
NAME = "online-mind2web"
#: Exploration depth of live sites in the experiments of WebNavigator (section 4.1).
DEPTH = 1


def site_list() -> AbstractContextManager[Path]:
    """Return a context manager for the site list: a CSV file with each host and its number of tasks."""
    return as_file(files("waygraph.benchmarks").joinpath("online_mind2web_sites.csv"))
