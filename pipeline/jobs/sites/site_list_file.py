"""Site lists: files of start URLs, read as a stream."""

from __future__ import annotations

import csv
import json
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from waygraph.core.errors import InvalidInput
from waygraph.core.urls import parse_start_url, site_key

#: Columns (CSV) and keys (JSON) that may hold a start URL, in order of preference.
URL_COLUMNS = ("url", "website", "site", "start_url", "start_urls")

#: Number of kinds of malformed lines that are shown. The rest is counted.
_SHOWN_PROBLEMS = 10
#: Number of lines shown per kind.
_SHOWN_LINES = 3
#: Longer lines are not URLs and are not held in memory.
_LONGEST_LINE = 100_000
#: Maximal size of a JSON document, which is read as a whole.
_LARGEST_JSON = 64 * 2**20


@dataclass(frozen=True, slots=True)
class SiteListFormat:
    """Conventions of a site list beyond plain URLs, such as those of a benchmark's task files.

    Attributes
    ----------
    placeholder
        Pattern of names at the beginning of a URL that stand for the URL of a site. None: there are none.
    separator
        Separator of several URLs in one field. Empty: one URL per field.
    task_key
        Column or key of records that are tasks: each of their sites is listed once. Empty: no record is a task.
    """

    placeholder: re.Pattern[str] | None = None
    separator: str = ""
    task_key: str = ""


_PLAIN_FORMAT = SiteListFormat()


def read_sites(
    source: Path, placeholders: Mapping[str, str] | None = None, *, list_format: SiteListFormat = _PLAIN_FORMAT
) -> list[str]:
    """Read start URLs from a file as a stream.

    CSV (`.csv`), JSON lines (`.jsonl`) and JSON lists (`.json`) have the URL under one of `URL_COLUMNS`. Any other file
    has one URL per line; `#` starts a comment at the beginning of a line or after a space.

    Parameters
    ----------
    source
        The file.
    placeholders
        URLs of placeholders. A URL that begins with a placeholder is replaced with its URL.
    list_format
        Conventions of the list.

    Returns
    -------
    list[str]
        Start URLs, not necessarily of distinct sites.

    Raises
    ------
    InvalidInput
        If the file cannot be read, or any line is malformed. All kinds of malformed lines are listed at once.
    """
    try:
        return _read(source, placeholders or {}, list_format)
    except OSError as error:
        raise InvalidInput(
            f"The site list '{source}' cannot be read: {error.strerror}.", hint="Check the path."
        ) from error
    except UnicodeDecodeError as error:
        raise InvalidInput(
            f"The site list '{source}' cannot be read: {error}.", hint="Give a UTF-8 text file."
        ) from error


def _read(path: Path, placeholders: Mapping[str, str], list_format: SiteListFormat) -> list[str]:
    reader = _READERS.get(path.suffix.lower(), _read_text)
    urls: list[str] = []
    listed: set[str] = set()
    problems = _Problems()
    with path.open(encoding="utf-8-sig", newline="") as file:
        for number, entry in reader(file, path):
            try:
                for text in entry.texts(list_format.separator):
                    url = _start_url(text, placeholders, list_format.placeholder)
                    site = site_key(url)
                    if entry.is_task(list_format) and site in listed:
                        continue
                    listed.add(site)
                    urls.append(url)
            except InvalidInput as error:
                problems.add(number, error.message)
    problems.check(path)
    if not urls:
        raise InvalidInput(f"The site list '{path}' names no site.", hint="Write one URL per line.")
    return urls


def _start_url(text: str, placeholders: Mapping[str, str], pattern: re.Pattern[str] | None) -> str:
    match = pattern.match(text.strip()) if pattern is not None else None
    if match is None:
        return parse_start_url(text)
    if match[0] not in placeholders:
        raise InvalidInput(f"the placeholder {match[0]} has no URL (--placeholder {match[0]}=URL).")
    return parse_start_url(placeholders[match[0]])


class _Problems:
    """Malformed lines by kind, in bounded memory."""

    def __init__(self) -> None:
        self._count = 0
        self._kinds: dict[str, list[int]] = {}
        """The first lines, by message."""
        self._more: Counter[str] = Counter()
        """The number of further lines, by message."""

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
        """Raise InvalidInput if there are problems."""
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
class _Entry:
    """The URLs of a line, with the keys of its record, or the problem with it."""

    value: object
    keys: Collection[str] = ()
    problem: str = ""

    def is_task(self, list_format: SiteListFormat) -> bool:
        return bool(list_format.task_key) and list_format.task_key in self.keys

    def texts(self, separator: str) -> list[str]:
        """Return the URLs, not validated. Raise InvalidInput if there are none."""
        if self.problem:
            raise InvalidInput(self.problem)
        values = self.value if isinstance(self.value, list) else [self.value]
        if not values or not all(isinstance(value, str) and value.strip() for value in values):
            raise InvalidInput(f"no text under {' or '.join(URL_COLUMNS)}.")
        return [part for value in values for part in (str(value).split(separator) if separator else [str(value)])]


_Entries = Iterator[tuple[int, _Entry]]


def _numbered(file: Iterable[str]) -> Iterator[tuple[int, str | None]]:
    """Yield line numbers from 1 and lines. Too long lines are read in pieces and yield None."""
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


def _read_text(file: Iterable[str], _path: Path) -> _Entries:
    for number, line in _numbered(file):
        # URLs may have fragments, so only `#` after white space starts a comment.
        if line is None:
            yield number, _TOO_LONG
        elif url := f" {line}".replace("\t", " ").partition(" #")[0].strip():
            yield number, _Entry(url)


def _read_csv(file: Iterable[str], path: Path) -> _Entries:
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
                missing = _Entry(None, problem=f"no '{header[column]}'.")
                yield reader.line_num, missing if short else _Entry(row[column], header)
    except csv.Error as error:
        yield reader.line_num, _Entry(None, problem=f"not CSV: {error}.")


def _read_json_lines(file: Iterable[str], _path: Path) -> _Entries:
    for number, line in _numbered(file):
        if line is None:
            yield number, _TOO_LONG
        elif line.strip():
            try:
                yield number, _record(json.loads(line))
            except (ValueError, RecursionError) as error:
                yield number, _Entry(None, problem=f"not JSON: {error}.")


def _read_json(file: Iterable[str], path: Path) -> _Entries:
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
        raise InvalidInput(f"The site list '{path}' is not a list.", hint='Write [{"url": ...}, ...].')
    for number, record in enumerate(document, 1):
        yield number, _Entry(record) if isinstance(record, str) else _record(record)


def _record(record: Any) -> _Entry:  # noqa: ANN401 - JSON
    if not isinstance(record, dict):
        return _Entry(None)
    value = next((record[name] for name in URL_COLUMNS if record.get(name)), None)
    return _Entry(value, record.keys())


_TOO_LONG = _Entry(None, problem=f"longer than {_LONGEST_LINE:,} characters.")
_READERS = {
    ".csv": _read_csv,
    ".jsonl": _read_json_lines,
    ".ndjson": _read_json_lines,
    ".json": _read_json,
}
