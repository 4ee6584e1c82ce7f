"""Measurements of `bench.against`: one function per part, each giving the quantities of both builds for each run."""

from __future__ import annotations

import asyncio
import itertools
import json
import random
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from bench import sites as sites_of_others
from bench.builds import Build
from bench.process_tree import Usage, measured
from bench.real_sites import Served
from bench.serve_load import Ask, Reply, closed_loop, percentiles_ms
from bench.serve_process import SERVE_UVICORN, Service
from bench.serve_store import questions, site_key
from bench.site_walks import BROWSER
from waygraph.core.urls import site_key as key_of_url
from waygraph.demo_site import DemoSite

OLDER, THIS, UVICORN = "older build", "this build", "uvicorn"
#: Number of further canonical exports, beside that of the first run; 0 if all runs of both builds gave the same map.
DIFFERENT = "different exports"
#: Sites of the part `sites`, and the share of --states that is explored of each.
SITES = {"tabler": 1.0, "wagtail": 1.0, "dokuwiki": 1.0, "fossil": 1.0, "node-red": 0.25}
#: States of a synthetic map.
_STATES = 500
#: Requests of each kind to the service.
_CALLS = 200
_FILL = """
import sys
from bench.serve_store import fill
from waygraph.core.settings import Settings
from waygraph.index.store import Store
from waygraph.pipeline.encode.registry import create_encoder
fill(Store.open(sys.argv[1], create=True), int(sys.argv[2]), int(sys.argv[3]), create_encoder(Settings().encode))
"""

#: What one run measured: values by quantity, by build.
Run = dict[str, dict[str, float]]


@dataclass(frozen=True)
class Bench:
    """Parameters of every part.

    Attributes
    ----------
    builds : the builds by side.
    runs : how often each does the same.
    scratch : folder that is kept: sites of others.
    temporary : folder that is not.
    sites : names of sites of the part `sites`.
    states : states that are explored of each.
    maps : number of maps of the part `serve`.
    """

    builds: Mapping[str, Build]
    runs: int
    scratch: Path
    temporary: Path
    sites: tuple[str, ...]
    states: int
    maps: int

    def stores(self, maps: int) -> dict[str, Path]:
        """Return a store of synthetic maps for each side, made by its build."""
        made = {}
        for side, build in self.builds.items():
            made[side] = self.temporary / f"{maps} maps of the {side}"
            build.script(_FILL, made[side], str(maps), str(_STATES))
        return made


def shop(bench: Bench) -> list[Run]:
    """Map the demo shop."""
    with DemoSite() as site:
        return _indexed(bench, "demo shop", site.url, "--depth", "3")


def page(bench: Bench) -> list[Run]:
    """Map one page."""
    with DemoSite() as site:
        return _indexed(bench, "one page", site.url, "--depth", "0", "--max-states", "1")


def sites(bench: Bench) -> list[Run]:
    """Map sites of others."""
    known = {site.name: site for site in sites_of_others.SITES}
    runs: list[Run] = [{}] * bench.runs
    for name in bench.sites:
        site = known[name]
        with ExitStack() as stack:
            served: Served = stack.enter_context(site.get(bench.scratch))
            words = ["--depth", str(site.depth), "--max-states", str(round(bench.states * SITES[name]))]
            words += [] if site.robots else ["--no-robots"]
            words += ["--storage-state", str(served.storage_state)] if served.storage_state else []
            found = _indexed(bench, name, served.start, *words, between=served.forget)
        runs = [_joined(before, more) for before, more in zip(runs, found, strict=True)]
    return runs


def cold(bench: Bench) -> list[Run]:
    """Start a process that answers one question."""
    site, stores, runs = site_key(0), bench.stores(1), []
    for number in range(bench.runs):
        run: Run = {}
        for side, build in bench.builds.items():
            store = ("--store", stores[side])
            commands = {
                "help": ("--help",),
                "search": ("search", site, f"open invoices {number}", *store),
                "path": ("path", site, f"http://{site}/area-0/page-200", *store),
                "show": ("show", site, *store),
            }
            run[side] = {}
            for name, words in commands.items():
                run[side] |= _quantities(name, measured(build.command(*words), build.environment, folder=build.root))
        runs.append(run)
        _print(run)
    return runs


def serve(bench: Bench) -> list[Run]:
    """Start the service, and send it requests."""
    stores, runs = bench.stores(bench.maps), []
    older = bench.builds[OLDER]
    services: dict[str, Callable[[], Service]] = {
        OLDER: lambda: Service(str(stores[OLDER]), build=older),
        THIS: lambda: Service(str(stores[THIS])),
        f"{THIS} --local": lambda: Service(str(stores[THIS]), local=True),
        UVICORN: lambda: Service(str(stores[THIS]), code=SERVE_UVICORN),
    }
    for number in range(bench.runs):
        run: Run = {}
        for side, start in services.items():
            with start() as service:
                run[side] = _served(service, bench.maps, seed=number)
        runs.append(run)
        _print(run)
    return runs


PARTS: dict[str, Callable[[Bench], list[Run]]] = {
    "shop": shop,
    "sites": sites,
    "page": page,
    "cold": cold,
    "serve": serve,
}


def _indexed(bench: Bench, name: str, url: str, *words: str, between: Callable[[], None] = lambda: None) -> list[Run]:
    """Map a site with both builds by turns, and compare the canonical exports. Browsers reach this machine only."""
    runs: list[Run] = []
    exports: dict[bytes, str] = {}
    for number in range(bench.runs):
        run: Run = {}
        for side, build in bench.builds.items():
            between()
            environment = build.environment | {"WAYGRAPH_BROWSER__EXTRA_ARGS": json.dumps(BROWSER.extra_args)}
            with tempfile.TemporaryDirectory(dir=bench.temporary) as folder:
                store = ("--store", folder)
                usage = measured(build.command("index", url, *words, *store), environment, folder=build.root)
                exported = build.output("export", key_of_url(url), "--inherited", *store)
            exports.setdefault(exported, f"run {number + 1} of the {side}")
            states = len(json.loads(exported)["nodes"])
            run[side] = {**_quantities(name, usage), f"{name}: states": states}
        runs.append(run)
        _print(run)
    if len(exports) > 1:
        print(f"{name}: the exports differ, first those of {' and '.join(exports.values())}", flush=True)
    for run in runs:
        run[THIS][f"{name}: {DIFFERENT}"] = len(exports) - 1
    return runs


def _quantities(name: str, usage: Usage) -> dict[str, float]:
    return {
        f"{name}: seconds": usage.seconds,
        f"{name}: CPU seconds": usage.cpu_seconds,
        f"{name}: peak MiB": usage.peak_mib,
        f"{name}: processes": usage.processes,
    }


def _served(service: Service, maps: int, seed: int) -> dict[str, float]:
    """Return what a service takes that has just started."""
    found = {
        "seconds to ready": service.seconds_to_ready,
        "MiB when ready": service.tree.memory_mib(),
        "processes": len(service.tree.processes()),
    }
    _asked(service, itertools.repeat(Ask("/healthz")), clients=1, calls=30)
    before = service.tree.cpu_seconds()
    replies = _asked(service, itertools.repeat(Ask("/healthz")), clients=1, calls=_CALLS)
    found["empty request: CPU ms"] = (service.tree.cpu_seconds() - before) / _CALLS * 1_000
    found["empty request: p50 ms"] = percentiles_ms(replies)[0]
    first = (Ask(f"/v1/sites/{site_key(number)}/search", {"query": "open it"}) for number in range(maps))
    _asked(service, first, clients=2, calls=maps)
    for clients in (1, 16):
        before = service.tree.cpu_seconds()
        replies = _asked(service, _searches(maps, seed=100 * seed + clients), clients=clients, calls=_CALLS)
        name = f"search, {clients} client{'s' if clients > 1 else ''}"
        found[f"{name}: p50 ms"] = percentiles_ms(replies)[0]
        found[f"{name}: CPU ms"] = (service.tree.cpu_seconds() - before) / _CALLS * 1_000
    found[f"MiB with {maps} maps open"] = service.tree.memory_mib()
    return found


def _searches(maps: int, seed: int) -> Iterator[Ask]:
    rng = random.Random(seed)
    for question in questions(seed):
        yield Ask(f"/v1/sites/{site_key(rng.randrange(maps))}/search", {"query": question, "k": 10})


def _asked(service: Service, asks: Iterator[Ask], *, clients: int, calls: int) -> Sequence[Reply]:
    replies = asyncio.run(closed_loop(service.url, asks, clients=clients, calls=calls))
    if failed := [reply for reply in replies if reply.status != 200]:
        raise SystemExit(f"{len(failed)} of {len(replies)} requests failed, one of them so: {failed[0]}")
    return replies


def _joined(before: Run, more: Run) -> Run:
    return {side: {**before.get(side, {}), **values} for side, values in more.items()}


def _print(run: Run) -> None:
    print(json.dumps(run), flush=True)
