"""Benchmark of sitemaps: time and memory of reading a listing of 200,000 pages, and whether it is the same twice.

    python -m bench.sitemaps [--pages 200000] [--leads 100000] [--save]

A server in a process of its own has an index of gzip files with 50,000 pages each. They are requested through the
egress proxy, read, stored in the journal, and made into leads, in a fresh process each time. CPU seconds, and the peak
of the process's memory with all libraries (`ru_maxrss`), are counted after each step. `--save` writes
bench/results/sitemaps.json.
"""

from __future__ import annotations

import argparse
import asyncio
import gzip
import hashlib
import resource
import tempfile
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from contextlib import closing
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from bench.result_files import RESULTS, run_info, write_result
from tests.sites.server import FixtureServer, Page
from waygraph.core.settings import Settings
from waygraph.core.urls import normalize_url, site_key
from waygraph.pipeline.browser.egress.download import download
from waygraph.pipeline.explore.checkpoint.journal import Journal
from waygraph.pipeline.explore.engine.listed_leads import ListedLeads
from waygraph.pipeline.explore.records.listing import SiteListing
from waygraph.pipeline.explore.session.network_boundary import network_boundary
from waygraph.pipeline.explore.sitemap.listing import ListingLimits, ListingReader
from waygraph.pipeline.explore.sitemap.sitemap_file import MAX_BYTES, MAX_URLS

TARGET_SECONDS, TARGET_MB = 20.0, 300.0


def _pages(site: str, pages: int) -> dict[str, Page]:
    """Return the files of a site that lists so many pages: products in folders, with dates, as shops do."""
    files: dict[str, Page] = {}
    for first in range(0, pages, MAX_URLS):
        rows = "".join(
            f"<url><loc>{site}shop-{number % 97}/product-{number}-name</loc>"
            f"<lastmod>2026-01-{number % 28 + 1:02}T10:00:00+00:00</lastmod>"
            f"<changefreq>daily</changefreq><priority>0.5</priority></url>\n"
            for number in range(first, min(first + MAX_URLS, pages))
        )
        files[f"/sitemap-{first}.xml.gz"] = Page(gzip.compress(f"<urlset>{rows}</urlset>".encode(), 1))
    index = "".join(f"<sitemap><loc>{path}</loc></sitemap>" for path in files)
    return {**files, "/sitemap.xml": Page(f"<sitemapindex>{index}</sitemapindex>")}


def _serve(pages: int, pipe: Any) -> None:
    with FixtureServer({}) as site:
        site.pages.update(_pages(site.url, pages))
        pipe.send(site.url)
        pipe.recv()


def _spent() -> dict[str, float]:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return {"cpu_s": round(used.ru_utime + used.ru_stime, 2), "peak_mb": round(used.ru_maxrss / 1024, 1)}


async def _read(site: str, journal: Path) -> SiteListing:
    """Read the listing and store it."""
    async with network_boundary(site, Settings()) as boundary:

        async def load(url: str) -> bytes:
            return (
                await download(url, {}, proxy=boundary.proxy.url, max_bytes=MAX_BYTES, timeout_s=10.0, decoded=False)
            ).content

        scope = boundary.policies.scope
        reader = ListingReader(load, lambda url: scope.refuse_url(url) is None, ListingLimits())
        await reader.read([f"{site}sitemap.xml"])
        with closing(Journal.open(journal, {})) as opened:
            await opened.record_listing(listing := reader.listing())
            if opened.listing() != listing:
                raise RuntimeError("the journal holds another listing than was read")
        return listing


def measure(site: str, leads: int) -> dict[str, Any]:
    """Read the listing of a site once, in this process.

    Parameters
    ----------
    site
        URL of the start page.
    leads
        Number of leads to make.

    Returns
    -------
    dict
        Numbers of pages and leads, a digest of the leads, and what was spent until each step.
    """
    steps, began = {"start": _spent()}, time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        listing = asyncio.run(_read(site, Path(folder) / "journal"))
    seconds = round(time.monotonic() - began, 2)
    steps["read and stored"] = _spent()
    listed = ListedLeads(listing.pages, normalize_url)
    digest, made = hashlib.sha256(), 0
    for page in listed.most_novel_first(lambda _: False, [site], lambda _: None, Counter()):
        if made == leads:
            break
        made += 1
        digest.update(listed.lead(page, normalize_url(page.url), "start").url.encode())
    steps["leads"] = _spent()
    return {
        "pages": len(listing.pages),
        "counters": dict(listing.counters),
        "leads": made,
        "digest": digest.hexdigest()[:12],
        "wall_s": seconds,
        "steps": steps,
    }


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--pages", type=int, default=200_000)
    parser.add_argument("--leads", type=int, default=100_000)
    parser.add_argument("--save", action="store_true")
    options = parser.parse_args()
    context = get_context("spawn")
    ours, theirs = context.Pipe()
    server = context.Process(target=_serve, args=(options.pages, theirs), daemon=True)
    server.start()
    site = ours.recv()
    runs = []
    for _ in range(2):
        with ProcessPoolExecutor(1, mp_context=context) as pool:
            runs.append(pool.submit(measure, site, options.leads).result())
    ours.send("end")
    server.join()
    for run in runs:
        spent = run["steps"]["leads"]
        print(f"{run['pages']} pages, {run['leads']} leads {run['digest']}: read in {run['wall_s']} s; {run['steps']}")
        print(f"  {spent['cpu_s']} s of CPU (target {TARGET_SECONDS:g}), {spent['peak_mb']} MB (target {TARGET_MB:g})")
    is_same = runs[0]["digest"] == runs[1]["digest"]
    print("the same twice" if is_same else "NOT the same twice")
    if options.save:
        host = site_key(site)
        write_result(RESULTS / "sitemaps.json", {**run_info(), "site": host.partition(":")[0], "runs": runs})


if __name__ == "__main__":
    main()
