"""Sites of the retrieval benchmark, and the command that maps them.

    python -m bench.retrieval.maps --store FOLDER [--only NAME ...] [--states N]

Nine sites: the bundled shop, and eight that this project did not write, installed from package registries and served on
loopback. Each is explored without encoding it and published to a store of its own below FOLDER; existing maps
are kept. One site takes a minute to ten; the browser can reach only this machine. `--states N` makes smaller maps,
which lie beside the others.
"""

from __future__ import annotations

import argparse
import asyncio
import shutil
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

from bench.real_sites import Served, dokuwiki, gentelella, jupyterlab, node_red, python_docs, tabler, wagtail
from bench.retrieval.more_sites import fossil
from waygraph.core.settings import BrowserSettings, Settings
from waygraph.demo_site import DemoSite
from waygraph.index.store import MapVersion, Store
from waygraph.pipeline.explore.exploration import explore_site
from waygraph.pipeline.jobs.publishing.draft import draft_from_capture

BROWSER = BrowserSettings(extra_args=("--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",))


@contextmanager
def shop(_scratch: Path) -> Iterator[Served]:
    """Serve the bundled demo shop with its back office."""
    with DemoSite() as site:
        yield Served(site.url, Path())


#: Recipes and weights are chosen on sites of `dev`. Sites of `test` are asked once per release.
Split = Literal["dev", "test"]


@dataclass(frozen=True)
class Site:
    """A site, what it is, how far it is explored, and the split that all its questions belong to."""

    name: str
    what: str
    get: Callable[[Path], AbstractContextManager[Served]]
    depth: int
    max_states: int
    robots: bool = True
    """Whether its robots.txt is honoured; not where it disallows everything although the copy is ours."""
    split: Split = "dev"


SITES = {
    site.name: site
    for site in (
        Site("shop", "the bundled shop and its back office", shop, 3, 500),
        Site("gentelella", "npm: an admin dashboard", gentelella, 3, 180),
        Site("python-docs", "Debian: documentation of a programming language", python_docs, 2, 200),
        Site("wagtail", "PyPI: a content management system, logged in", wagtail, 3, 200),
        Site("fossil", "Debian: a project's source control, tickets and wiki, logged in", fossil, 3, 200),
        Site("dokuwiki", "Debian: a wiki of text files, logged in", dokuwiki, 3, 250, split="test"),
        Site("tabler", "npm: a template of dashboards", tabler, 3, 150, robots=False, split="test"),
        Site("node-red", "npm: an editor of flows, a single page", node_red, 3, 100, split="test"),
        Site("jupyterlab", "PyPI: a workbench for notebooks, a single page", jupyterlab, 3, 100, split="test"),
    )
}


def names(split: Split) -> list[str]:
    """Return the sites of a split."""
    return [site.name for site in SITES.values() if site.split == split]


def map_folder(name: str, folder: Path, states: int | None = None) -> Path:
    """Return the folder of the store of a site's map; `states` is the limit of a smaller one."""
    return folder / "maps" / (name if states is None else f"{name}-{states}")


def explore(site: Site, folder: Path, states: int | None = None) -> None:
    """Explore `site` and publish its map, without vectors, to its folder below `folder`."""
    store_folder = map_folder(site.name, folder, states)
    shutil.rmtree(store_folder, ignore_errors=True)
    scratch = folder / "sites"
    scratch.mkdir(parents=True, exist_ok=True)
    store = Store.open(str(store_folder), create=True)
    with site.get(scratch) as served:
        settings = Settings(
            browser=BROWSER,
            explore={
                "depth": site.depth,
                "max_states": states or site.max_states,
                "storage_state": served.storage_state,
                "robots": site.robots,
            },
        )
        capture = asyncio.run(explore_site(served.start, settings=settings, blobs=store.blobs))
    store.publish(draft_from_capture(capture, settings))
    print(f"{site.name}: {len(capture.graph)} states in {capture.report.seconds:.0f} s", flush=True)


def open_map(name: str, folder: Path, states: int | None = None) -> MapVersion:
    """Return the map of a site that `explore` published.

    Raises
    ------
    SystemExit
        When there is none.
    """
    store_folder = map_folder(name, folder, states)
    if not store_folder.is_dir():
        raise SystemExit(f"There is no map of {name} in {folder}: python -m bench.retrieval.maps --store {folder}")
    store = Store.open(str(store_folder))
    sites = store.sites()
    if len(sites) != 1:
        raise SystemExit(f"{store_folder} holds {len(sites)} maps; remove it and map {name} again.")
    return store.read(sites[0])


def path_of(url: str) -> str:
    """Return a URL without scheme, host and port, which differ from run to run."""
    parts = urlsplit(url)
    return (
        (parts.path or "/")
        + (f"?{parts.query}" if parts.query else "")
        + (f"#{parts.fragment}" if parts.fragment else "")
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--store", type=Path, default=Path("retrieval-maps"), help="where sites are installed and maps are kept"
    )
    parser.add_argument("--only", nargs="*", choices=sorted(SITES), help="these sites alone")
    parser.add_argument("--states", type=int, help="limit of states, in place of that of each site")
    parser.add_argument("--again", action="store_true", help="map also what is mapped already")
    arguments = parser.parse_args()
    folder = arguments.store.resolve()
    for name, site in SITES.items():
        if name not in (arguments.only or SITES):
            continue
        if arguments.again or not (map_folder(name, folder, arguments.states) / "sites").is_dir():
            explore(site, folder, arguments.states)


if __name__ == "__main__":
    main()
