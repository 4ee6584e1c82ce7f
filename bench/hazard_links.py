"""Count of the links on pages of others that the lexicon of hazards refuses by their address, and by their name.

Reads the HTML of every page of sites that are folders of files, without a browser:

    python -m bench.hazard_links [--sites python-docs,gentelella,tabler] [--scratch FOLDER] [--save]
"""

from __future__ import annotations

import argparse
import tempfile
from collections import Counter
from collections.abc import Callable
from contextlib import AbstractContextManager
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import urljoin, urlsplit

import httpx

from bench import real_sites
from bench.result_files import RESULTS, run_info, write_result
from waygraph.pipeline.explore.policies.hazard_names import hazard_in_name
from waygraph.pipeline.explore.policies.hazard_urls import hazard_in_url

SITES: dict[str, Callable[[Path], AbstractContextManager[real_sites.Served]]] = {
    "python-docs": real_sites.python_docs,
    "gentelella": real_sites.gentelella,
    "tabler": real_sites.tabler,
}
_EXAMPLES = 20


class _Links(HTMLParser):
    """Targets and texts of links."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, list[str]]] = []
        self._texts: list[str] | None = None

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "a" and (target := dict(attrs).get("href")):
            self._texts = []
            self.found.append((target, self._texts))

    def handle_data(self, data: str) -> None:
        if self._texts is not None:
            self._texts.append(data)

    def handle_endtag(self, tag: str) -> None:
        if tag == "a":
            self._texts = None


def count(served: real_sites.Served) -> dict[str, object]:
    """Count the links to other pages of a site, and those that are refused."""
    by_address, by_name = Counter[str](), Counter[str]()
    links, host = 0, urlsplit(served.start).netloc
    with httpx.Client(timeout=20) as client:
        for page in served.pages:
            parser = _Links()
            parser.feed(client.get(page).text)
            for target, texts in parser.found:
                url, name = urljoin(page, target), " ".join("".join(texts).split())
                if urlsplit(url).netloc != host or target.startswith("#"):
                    continue
                links += 1
                path = url.removeprefix(served.start[: served.start.index(host) + len(host)])
                if hazard_in_url(url):
                    by_address[path] += 1
                elif "#" not in url and hazard_in_name(name, shows=True, leads_to=url):
                    by_name[f"{name} -> {path}"] += 1
    return {
        "pages": len(served.pages),
        "links": links,
        "refused_by_address": by_address.total(),
        "refused_by_name": by_name.total(),
        "addresses": dict(by_address.most_common(_EXAMPLES)),
        "names": dict(by_name.most_common(_EXAMPLES)),
    }


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sites", default=",".join(SITES), help=f"comma-separated, out of {', '.join(SITES)}")
    parser.add_argument("--scratch", type=Path, help="folder for installed sites; kept")
    parser.add_argument("--save", action="store_true", help="write the result to bench/results/")
    options = parser.parse_args()
    scratch = options.scratch or Path(tempfile.mkdtemp(prefix="waygraph-links-"))
    scratch.mkdir(parents=True, exist_ok=True)
    counts = {}
    for name in options.sites.split(","):
        with SITES[name](scratch) as served:
            counts[name] = count(served)
        print(name, counts[name], flush=True)
    if options.save:
        write_result(RESULTS / "hazard_links.json", {**run_info(), "sites": counts})


if __name__ == "__main__":
    main()
