"""Site lists in the formats of benchmarks: task files, and lists that come with waygraph."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from waygraph.benchmarks import online_mind2web, webarena
from waygraph.pipeline.jobs.sites.site_list_file import SiteListFormat, read_sites

#: Task files of Online-Mind2Web and WebArena: several tasks start from one site, whose URL may be a placeholder.
TASK_LIST_FORMAT = SiteListFormat(
    placeholder=webarena.PLACEHOLDER, separator=webarena.START_URL_SEPARATOR, task_key="task_id"
)


def read_task_sites(source: Path, placeholders: Mapping[str, str]) -> list[str]:
    """Read start URLs from a site list or a task file.

    Parameters
    ----------
    source
        A file, see `waygraph.pipeline.jobs.sites.site_list_file.read_sites`. `online-mind2web` is the list that comes
        with waygraph, unless there is a file of that name.
    placeholders
        URLs of placeholders such as `__SHOPPING__`.

    Returns
    -------
    list[str]
        Start URLs.

    Raises
    ------
    InvalidInput
        If the file cannot be read, or any line is malformed.
    """
    if str(source) == online_mind2web.NAME and not source.exists():
        with online_mind2web.site_list() as shipped:
            return read_sites(shipped, list_format=TASK_LIST_FORMAT)
    return read_sites(source, placeholders, list_format=TASK_LIST_FORMAT)
