"""Make training pairs of one package: queries, and the pages that answer them as the encoder `text` describes them.

    python -m bench.retrieval.training.pairs PACKAGES --out FOLDER

PACKAGES holds one folder per package, as `dpkg-deb -x` unpacks it. Writes `FOLDER/NAME.json` for each package with
at least 30 queries.

| kind | query | page |
| --- | --- | --- |
| `anchor` | text of a link, and the heading above it | the page that it leads to |
| `sentence` | the sentence that a link is part of | the same |
| `description` | the page's summary, which it does not show | the page |
| `passage` | title and heading | the text below the heading, alone |
| `setting` | a description, or keywords | the name of a panel, program or setting |
"""

from __future__ import annotations

import argparse
import gzip
import json
import posixpath
import random
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from bench.retrieval.training.documents import Document, Link, read_document
from bench.retrieval.training.settings_files import read_desktop, read_schema
from waygraph.core.text import shortened
from waygraph.index.graph import Box, Observation, Segment
from waygraph.pipeline.encode.text.anchor_text import COMMON_SHARE, COMMON_STATES
from waygraph.pipeline.encode.text.composites import describe, has_words
from waygraph.pipeline.encode.text.site_text import SiteText
from waygraph.pipeline.encode.text_counts import clean, count_segments

#: Pages read of one package; a random choice of larger ones.
MAX_PAGES = 600
#: Queries of one kind about one page.
MAX_OF_KIND = 2
MAX_QUERY_CHARS = 200
MIN_PASSAGE_WORDS = 12
#: Packages with fewer queries teach nothing: their pages are hardly each other's negatives.
MIN_QUERIES = 30
#: Folders and parts of file names of translations; English pages are in others.
_TRANSLATION = re.compile(
    r"(?:ar|bg|ca|cs|da|de|el|eo|es|et|eu|fa|fi|fr|gl|he|hr|hu|id|it|ja|ko|lt|nb|nl|nn|no|pl|pt|ro|ru|sk|sl|sr|sv|th"
    r"|tr|uk|vi|zh)(?:[-_]\w+)?"
)
_BOX = Box(0, 0, 0, 0)


@dataclass(frozen=True, slots=True)
class Page:
    """Texts of which a page's vectors are made: `context` is added to every row."""

    context: str
    rows: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Query:
    """A query and the number of the page that answers it."""

    text: str
    page: int
    kind: str


@dataclass(frozen=True, slots=True)
class Package:
    """Pairs of one package."""

    name: str
    pages: tuple[Page, ...]
    queries: tuple[Query, ...]


def read_package(folder: Path) -> Package:
    """Read the pairs of an unpacked package. The result depends on its files alone."""
    documents = list(_documents(folder))
    observations = _observations(documents)
    site = SiteText.from_counts(count_segments(observations))
    pages = []
    for observation in observations:
        state = describe(observation, site)
        pages.append(Page(state.context, tuple(row.text for row in state.rows)))
    queries = list(_about_pages(documents, site))
    for page, query in (*_passages(documents, site), *_settings(folder)):
        queries.append(Query(query.text, len(pages), query.kind))
        pages.append(page)
    return Package(folder.name, tuple(pages), tuple(_fit(queries)))


def _documents(folder: Path) -> Iterator[Document]:
    files = [path for path in sorted(folder.rglob("*")) if path.is_file() and not path.is_symlink()]
    files = [path for path in files if _is_page(path.relative_to(folder))]
    if len(files) > MAX_PAGES:
        files = sorted(random.Random(0).sample(files, MAX_PAGES))
    for file in files:
        content = gzip.decompress(file.read_bytes()) if file.suffix == ".gz" else file.read_bytes()
        path = file.relative_to(folder).as_posix().removesuffix(".gz")
        document = read_document(path, content.decode("utf-8", "replace"))
        if document.title and document.segments:
            yield document


def _is_page(path: Path) -> bool:
    if any(_TRANSLATION.fullmatch(part) for part in path.parts):
        return False
    name = path.name.removesuffix(".gz")
    if name.endswith(".page"):
        return "C" in path.parts
    # Debian's handbook and others keep languages in the names of files.
    language = name.split(".")[-2] if name.count(".") > 1 else ""
    return name.endswith((".html", ".htm", ".xhtml", ".html.en")) and not _TRANSLATION.fullmatch(language)


def _observations(documents: Sequence[Document]) -> list[Observation]:
    """Return what an exploration of the files would have seen. URLs begin below what all paths have in common."""
    folders = [document.path.rpartition("/")[0] for document in documents]
    common = posixpath.commonpath(folders) if folders else ""
    return [
        Observation(
            node_id=document.path,
            url=f"http://127.0.0.1/{posixpath.relpath(document.path, common or '.').removesuffix('.page')}",
            title=document.title,
            segments=tuple(Segment(text, role, _BOX) for text, role in document.segments),
        )
        for document in documents
    ]


def _about_pages(documents: Sequence[Document], site: SiteText) -> Iterator[Query]:
    """Yield what other pages call a page, and its summary."""
    numbers = {document.path: number for number, document in enumerate(documents)}
    yield from _from_links(documents, numbers, site)
    for document in documents:
        if len(document.description.split()) > 1:
            yield Query(document.description, numbers[document.path], "description")


def _from_links(documents: Sequence[Document], numbers: dict[str, int], site: SiteText) -> Iterator[Query]:
    """Yield what links say. A text that leads to many pages, or stands on most pages, describes none."""
    links = [link for document in documents for link in document.links if link.target in numbers]
    targets: dict[str, set[str]] = defaultdict(set)
    for link in links:
        targets[link.text].add(link.target)
    most = max(COMMON_STATES, COMMON_SHARE * len(documents))
    found: dict[str, list[Link]] = defaultdict(list)
    for link in links:
        if link.text not in site.boilerplate and len(targets[link.text]) <= min(3, most) and has_words(link.text):
            found[link.target].append(link)
    for target, of_page in sorted(found.items()):
        yield from _of_links(of_page, numbers[target])


def _of_links(links: Iterable[Link], page: int) -> Iterator[Query]:
    for link in links:
        yield Query(link.text, page, "anchor")
        if link.heading and link.heading != link.text:
            yield Query(f"{link.text}, {link.heading}", page, "anchor")
        if len(link.sentence.split()) > len(link.text.split()) + 3:
            yield Query(link.sentence, page, "sentence")


def _passages(documents: Iterable[Document], site: SiteText) -> Iterator[tuple[Page, Query]]:
    """Yield the text below each heading as a page of its own, and the heading with the title as its query."""
    for document in documents:
        heading, texts = "", list[str]()
        title = site.own_title(document.title)
        for text, role in (*document.segments, ("", "heading")):
            if text in site.boilerplate:
                continue
            if role != "heading":
                texts.append(text)
                continue
            passage = shortened(" ".join(texts), 400)
            if heading and len(passage.split()) >= MIN_PASSAGE_WORDS:
                name = heading if heading in title or not title else f"{heading}, {title}"
                yield Page(passage, ()), Query(name, 0, "passage")
            heading, texts = text, []


def _settings(folder: Path) -> Iterator[tuple[Page, Query]]:
    for file in sorted(folder.rglob("*")):
        if file.is_symlink() or file.suffix not in {".desktop", ".xml"} or not file.is_file():
            continue
        read = read_desktop if file.suffix == ".desktop" else read_schema
        if file.suffix == ".xml" and not file.name.endswith(".gschema.xml"):
            continue
        for thing in read(file.read_text("utf-8", "replace")):
            for text in thing.descriptions:
                yield Page(thing.name, ()), Query(text, 0, "setting")


def _fit(queries: Iterable[Query]) -> Iterator[Query]:
    """Yield distinct queries of a useful length, the first few of each kind about a page."""
    seen: set[tuple[str, int]] = set()
    of_kind: Counter[tuple[int, str]] = Counter()
    for query in queries:
        text = clean(query.text)
        if not has_words(text) or len(text) > MAX_QUERY_CHARS or of_kind[query.page, query.kind] >= MAX_OF_KIND:
            continue
        if (text.casefold(), query.page) not in seen:
            seen.add((text.casefold(), query.page))
            of_kind[query.page, query.kind] += 1
            yield Query(text, query.page, query.kind)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("packages", type=Path, help="folder with one folder per package")
    parser.add_argument("--out", type=Path, required=True, help="where the pairs are written")
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    total = 0
    for folder in sorted(path for path in arguments.packages.iterdir() if path.is_dir()):
        package = read_package(folder)
        if len(package.queries) < MIN_QUERIES:
            continue
        total += len(package.queries)
        kinds = Counter(query.kind for query in package.queries)
        print(f"{package.name}: {len(package.pages)} pages, {dict(sorted(kinds.items()))}", flush=True)
        (arguments.out / f"{package.name}.json").write_text(json.dumps(asdict(package)))
    print(f"{total} pairs")


if __name__ == "__main__":
    main()
