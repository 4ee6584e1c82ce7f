"""Which sites does a run cover? Start URLs from arguments and from files, checked, each site once."""

from __future__ import annotations

import csv
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib.resources import as_file, files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from index.graph import parse_start_url, site_key
from waygraph.errors import InvalidInput, StoreError

if TYPE_CHECKING:
    from index.store import Store

#: Columns (CSV) and keys (JSON) that may hold a start URL, in order of preference.
URL_COLUMNS = ("url", "website", "site", "start_url", "start_urls")
#: The hosts of the benchmark's 300 tasks, with the number of tasks on each: a list that comes with waygraph.
ONLINE_MIND2WEB = "online-mind2web"
_SHIPPED = {ONLINE_MIND2WEB: "online_mind2web_sites.csv"}

#: So many kinds of bad lines of a file are shown; the rest is counted.
_SHOWN_PROBLEMS = 10
#: And so many lines of each kind.
_SHOWN_LINES = 3
#: Longer lines are no URLs; they are not kept in memory.
_LONGEST_LINE = 100_000
#: A JSON document is read whole; lines are not.
_LARGEST_JSON = 64 * 2**20
_PLACEHOLDER = re.compile("__[A-Z][A-Z0-9_]*?__")
#: WebArena writes several start pages of one task so.
_AND = "|AND|"


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


def mapped_tasks(store: Store, sites: Iterable[str]) -> tuple[SiteTask, ...]:
    """Mapped sites, each once, with the start pages of their current versions, several of which are read at once.

    A version that cannot be read does not keep the others from being worked on: whoever takes the site up reads it
    again, and what is wrong with it becomes the outcome of that site.

    Raises
    ------
    NotFound
        When a site is not mapped.

    """
    from index.store.concurrency import concurrently  # noqa: PLC0415 - reading a list of sites needs no store

    def start_url(site: str) -> str:
        try:
            return store.manifest(site).start_url
        except StoreError:
            return f"http://{site}/"

    keys = list(dict.fromkeys(sites))
    return tuple(map(SiteTask, keys, concurrently(start_url, keys)))


def read_sites(source: Path, placeholders: Mapping[str, str] | None = None) -> list[str]:
    """Start URLs from a file, read as a stream: only URLs are kept.

    CSV (`.csv`) and JSON lines (`.jsonl`) have them under one of `URL_COLUMNS`; so have JSON documents (`.json`), which
    are a list. Any other file has one URL a line, where `#` starts a comment at the beginning of a line or after a
    space. Records with a `task_id` are tasks of a benchmark: each site that they start from is named once, and what
    starts at a placeholder (`__SHOPPING__/cart`) starts at the placeholder's own URL.

    Parameters
    ----------
    source : the file, or `online-mind2web` for the list that comes with waygraph.
    placeholders : what stands for `__NAME__`.

    Raises
    ------
    InvalidInput
        When the file cannot be read, or any of its lines is malformed: all kinds of bad lines are named at once.

    """
    if str(source) in _SHIPPED and not source.exists():
        with as_file(files("pipeline.jobs.sites").joinpath(_SHIPPED[str(source)])) as shipped:
            return read_sites(shipped)
    try:
        return _read(source, placeholders or {})
    except OSError as error:
        raise InvalidInput(
            f"The site list '{source}' cannot be read: {error.strerror}.", hint="Check the path."
        ) from error
    except UnicodeDecodeError as error:
        raise InvalidInput(
            f"The site list '{source}' cannot be read: {error}.", hint="Give a UTF-8 text file."
        ) from error


def _read(path: Path, placeholders: Mapping[str, str]) -> list[str]:
    reader = _READERS.get(path.suffix.lower(), _text)
    urls: list[str] = []
    of_tasks: set[str] = set()
    problems = _Problems()
    with path.open(encoding="utf-8-sig", newline="") as file:
        for number, found in reader(file, path):
            try:
                for text in found.texts():
                    url = _start_url(text, placeholders)
                    if found.is_task and site_key(url) in of_tasks:
                        continue
                    of_tasks.add(site_key(url))
                    urls.append(url)
            except InvalidInput as error:
                problems.add(number, error.message)
    problems.check(path)
    if not urls:
        raise InvalidInput(f"The site list '{path}' names no site.", hint="Give one URL a line.")
    return urls


def _start_url(text: str, placeholders: Mapping[str, str]) -> str:
    match = _PLACEHOLDER.match(text.strip())
    if match is None:
        return parse_start_url(text)
    if match[0] not in placeholders:
        raise InvalidInput(f"nothing is known to stand for {match[0]} (--placeholder {match[0]}=URL).")
    return parse_start_url(placeholders[match[0]])


class _Problems:
    """Bad lines by kind, in bounded memory."""

    def __init__(self) -> None:
        self._count = 0
        self._kinds: dict[str, list[int]] = {}
        """By message, the first lines."""
        self._more: Counter[str] = Counter()
        """By message, how many others."""

    def add(self, line: int, message: str) -> None:
        self._count += 1
        if message not in self._kinds and len(self._kinds) == _SHOWN_PROBLEMS:
            return
        lines = self._kinds.setdefault(message, [])
        if len(lines) < _SHOWN_LINES:
            lines.append(line)
        else:
            self._more[message] += 1

    def check(self, path: Path) -> None:
        """Raise what was added, if anything."""
        if not self._count:
            return
        shown = [
            f"  {', '.join(f'line {line}' for line in lines)}"
            f"{f' and {self._more[message]} more' if self._more[message] else ''}: {message}"
            for message, lines in self._kinds.items()
        ]
        left = self._count - sum(map(len, self._kinds.values())) - self._more.total()
        shown += [f"  and {left} more lines"] if left else []
        rows = "\n".join(shown)
        raise InvalidInput(
            f"The site list '{path}' has {self._count} malformed line(s); nothing was started.\n{rows}",
            hint="Correct or remove these lines.",
        )


@dataclass(frozen=True, slots=True)
class _Found:
    """What a line says: one or several URLs, or why none."""

    value: object
    is_task: bool = False
    problem: str = ""

    def texts(self) -> list[str]:
        """The URLs, unchecked (InvalidInput when there are none)."""
        if self.problem:
            raise InvalidInput(self.problem)
        values = self.value if isinstance(self.value, list) else [self.value]
        if not values or not all(isinstance(value, str) and value.strip() for value in values):
            raise InvalidInput(f"no text under {' or '.join(URL_COLUMNS)}.")
        return [part for value in values for part in str(value).split(_AND)]


_Lines = Iterator[tuple[int, _Found]]


def _numbered(file: Iterable[str]) -> Iterator[tuple[int, str | None]]:
    """Lines from 1; None for those that are too long, of which only a piece at a time is in memory."""
    readline: Callable[[int], str] = file.readline  # type: ignore[attr-defined]
    number = 0
    while line := readline(_LONGEST_LINE):
        number += 1
        if len(line) < _LONGEST_LINE or line.endswith("\n"):
            yield number, line
            continue
        while (line := readline(_LONGEST_LINE)) and not line.endswith("\n"):
            pass
        yield number, None


def _text(file: Iterable[str], _path: Path) -> _Lines:
    for number, line in _numbered(file):
        # A fragment belongs to a URL: only `#` after white space starts a comment.
        if line is None:
            yield number, _TOO_LONG
        elif url := f" {line}".replace("\t", " ").partition(" #")[0].strip():
            yield number, _Found(url)


def _csv(file: Iterable[str], path: Path) -> _Lines:
    reader = csv.reader(line if line is not None else "\n" for _, line in _numbered(file))
    try:
        header = [name.strip().lower() for name in next(reader, [])]
    except csv.Error:
        header = []
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
                missing = _Found(None, problem=f"no '{header[column]}'.")
                yield reader.line_num, missing if short else _Found(row[column], "task_id" in header)
    except csv.Error as error:
        yield reader.line_num, _Found(None, problem=f"not CSV: {error}.")


def _json_lines(file: Iterable[str], _path: Path) -> _Lines:
    for number, line in _numbered(file):
        if line is None:
            yield number, _TOO_LONG
        elif line.strip():
            try:
                yield number, _record(json.loads(line))
            except (ValueError, RecursionError) as error:
                yield number, _Found(None, problem=f"not JSON: {error}.")


def _json(file: Iterable[str], path: Path) -> _Lines:
    if (size := path.stat().st_size) > _LARGEST_JSON:
        raise InvalidInput(
            f"The site list '{path}' is a JSON document of {size:,} bytes; up to {_LARGEST_JSON:,} are read.",
            hint="Write one record a line, in a file that ends in .jsonl.",
        )
    try:
        document = json.loads("".join(file))
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"The site list '{path}' is not JSON: {error}.", hint="Correct it.") from error
    if not isinstance(document, list):
        raise InvalidInput(f"The site list '{path}' is no list.", hint='Write [{"url": ...}, ...].')
    for number, record in enumerate(document, 1):
        yield number, _Found(record) if isinstance(record, str) else _record(record)


def _record(record: Any) -> _Found:  # noqa: ANN401 - JSON
    if not isinstance(record, dict):
        return _Found(None)
    value = next((record[name] for name in URL_COLUMNS if record.get(name)), None)
    return _Found(value, is_task="task_id" in record)


_TOO_LONG = _Found(None, problem=f"longer than {_LONGEST_LINE:,} characters.")
_READERS = {".csv": _csv, ".jsonl": _json_lines, ".ndjson": _json_lines, ".json": _json}
