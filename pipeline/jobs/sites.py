"""Which sites does a run cover? Start URLs from arguments and from files, checked, each site once."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from index.graph import parse_start_url, site_key
from waygraph.errors import InvalidInput

#: Columns (CSV) and keys (JSONL) that may hold a start URL, in order of preference.
URL_COLUMNS = ("url", "website", "site", "start_url")

#: So many bad lines of a file are shown; the rest is counted.
_SHOWN_PROBLEMS = 10


@dataclass(frozen=True, slots=True)
class SiteTask:
    """One site to map: its key, and where exploring it starts."""

    site: str
    start_url: str


@dataclass(frozen=True, slots=True)
class SitePlan:
    """The sites of a run in the order given, and the URLs left out because their site was already named."""

    tasks: tuple[SiteTask, ...]
    duplicates: tuple[str, ...]


def plan_sites(urls: Iterable[str]) -> SitePlan:
    """Check every URL and keep the first of each site.

    Raises
    ------
    InvalidInput
        When a URL means nothing, or there is none.

    """
    tasks: dict[str, SiteTask] = {}
    duplicates: list[str] = []
    for text in urls:
        url = parse_start_url(text)
        site = site_key(url)
        if site in tasks:
            duplicates.append(url)
        else:
            tasks[site] = SiteTask(site, url)
    if not tasks:
        raise InvalidInput("No site to index.", hint="Name at least one URL, or a file of URLs.")
    return SitePlan(tuple(tasks.values()), tuple(duplicates))


def read_sites(path: Path) -> list[str]:
    """Start URLs from a file: CSV (`.csv`) or JSON lines (`.jsonl`) with one of `URL_COLUMNS`, else one URL a line.

    In a text file `#` starts a comment at the beginning of a line or after a space.

    Raises
    ------
    InvalidInput
        When the file cannot be read, or any of its lines is malformed: all bad lines are named at once.

    """
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(
            f"The site list '{path}' cannot be read: {error}.", hint="Give a UTF-8 text file."
        ) from error
    reader = {".csv": _csv, ".jsonl": _json_lines, ".ndjson": _json_lines}.get(path.suffix.lower(), _text)
    urls: list[str] = []
    problems: list[str] = []
    for number, found in reader(lines, path):
        try:
            if isinstance(found, InvalidInput):
                raise found
            urls.append(parse_start_url(found))
        except InvalidInput as error:
            problems.append(f"line {number}: {error.message}")
    if problems:
        shown = "\n".join(f"  {problem}" for problem in problems[:_SHOWN_PROBLEMS])
        more = f"\n  and {len(problems) - _SHOWN_PROBLEMS} more" if len(problems) > _SHOWN_PROBLEMS else ""
        raise InvalidInput(
            f"The site list '{path}' has {len(problems)} malformed line(s); nothing was started.\n{shown}{more}",
            hint="Correct or remove these lines.",
        )
    if not urls:
        raise InvalidInput(f"The site list '{path}' names no site.", hint="Give one URL a line.")
    return urls


#: A line number with the URL that stands there, or with what is wrong.
_Found = tuple[int, str | InvalidInput]


def _text(lines: Sequence[str], _path: Path) -> Iterator[_Found]:
    for number, line in enumerate(lines, 1):
        # A fragment belongs to a URL: only `#` after white space starts a comment.
        if url := f" {line}".replace("\t", " ").partition(" #")[0].strip():
            yield number, url


def _csv(lines: Sequence[str], path: Path) -> Iterator[_Found]:
    reader = csv.reader(lines)
    header = [name.strip().lower() for name in next(reader, [])]
    column = next((header.index(name) for name in URL_COLUMNS if name in header), None)
    if column is None:
        raise InvalidInput(
            f"The site list '{path}' has no column {' or '.join(URL_COLUMNS)} in its first line.",
            hint="Add a header line, or rename the file to .txt when it holds one URL a line.",
        )
    try:
        for row in reader:
            if any(cell.strip() for cell in row):
                short = len(row) <= column or not row[column].strip()
                yield reader.line_num, InvalidInput(f"no '{header[column]}'.") if short else row[column]
    except csv.Error as error:
        yield reader.line_num, InvalidInput(f"not CSV: {error}.")


def _json_lines(lines: Sequence[str], _path: Path) -> Iterator[_Found]:
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except ValueError as error:
            yield number, InvalidInput(f"not JSON: {error}.")
            continue
        value = (
            next((record[name] for name in URL_COLUMNS if name in record), None) if isinstance(record, dict) else None
        )
        yield number, value if isinstance(value, str) else InvalidInput(f"no text under {' or '.join(URL_COLUMNS)}.")
