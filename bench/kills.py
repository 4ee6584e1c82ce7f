"""Fault test of a run: kills of browser, driver, explorer, encoder and coordinator at random moments.

Runs `waygraph index` on a generated site, kills one of its processes (SIGKILL) repeatedly, starts it again whenever
the whole command was killed, and compares the map, leads included, with that of an undisturbed run:

    make soak-kills        WAYGRAPH_KILLS=50 WAYGRAPH_SEED=1 make soak-kills

The server counts the requests of each page. An undisturbed run loads a page once if no path leads through it; each kill
may repeat only the work that was in progress.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import psutil

from bench.result_files import RESULTS, run_info, write_result
from waygraph.demo_site.local_server import LocalServer, Request, Response
from waygraph.index.graph.export import to_json
from waygraph.index.store import Store

KILLS = int(os.environ.get("WAYGRAPH_KILLS", "50"))
SEED = int(os.environ.get("WAYGRAPH_SEED", time.time_ns() % 10**6))
SECTIONS, LEAVES, MENUS = 12, 12, 3
#: Pages that each leaf links to. They lie beyond the depth limit, so that they become leads.
DETAILS = 2
WORKERS = 4
#: Moments between two kills, in seconds.
SOONEST, LATEST = 0.5, 15.0
PATIENCE_S = 900.0
#: Every process that was seen to belong to a command.
STARTED: set[psutil.Process] = set()


def page(request: Request) -> Response:
    """Write a start page, sections with menus that open in place, and leaves."""
    parts = [part for part in request.path.split("/") if part]
    links: list[str] = []
    menus = ""
    if not parts:
        links = [f"/{section}" for section in range(SECTIONS)]
    elif len(parts) == 1 and parts[0].isdigit():
        links = [f"/{parts[0]}/{leaf}" for leaf in range(LEAVES)]
        menus = "".join(
            f"<button aria-expanded=false onclick=\"toggle(this, '{parts[0]}-{menu}', {menu})\">Menu {menu}</button>"
            for menu in range(MENUS)
        )
    elif len(parts) == 2:
        links = [f"{request.path}/{detail}" for detail in range(DETAILS)]
    else:
        return Response("not here", status=404)
    name = "-".join(parts) or "start"
    words = " ".join(f"{name}{word}" for word in ("apple", "river", "candle", "stone"))
    script = """<div id=o></div><script>function toggle(b, name, n) {
      const open = b.getAttribute('aria-expanded') === 'true'; b.setAttribute('aria-expanded', String(!open));
      o.innerHTML = open ? '' : `<h2>Menu ${name}</h2>` + '<p>entry</p>'.repeat(n + 1); }</script>"""
    items = "".join(f"<li><a href={link}>Page {link}</a></li>" for link in links)
    own = "<p>own</p>" * (len(parts) == 2 and int(parts[1]) + 1)
    return Response(f"<!doctype html><title>{name}</title><h1>{words}</h1>{menus}<ul>{items}</ul>{own}{script}")


def start(url: str, store: Path) -> subprocess.Popen[bytes]:
    """Start the command in its own session."""
    return subprocess.Popen(
        [
            *(sys.executable, "-m", "waygraph", "index", url, "--store", str(store), "--depth", "2"),
            *("--workers", str(WORKERS), "--json"),
        ],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        # Its pages say nothing but numbers, which is what traps do.
        env={**os.environ, "WAYGRAPH_JOBS__SITE_RETRIES": "1000", "WAYGRAPH_EXPLORE__TRAP_BUDGET": "1000"},
    )


def victims(command: subprocess.Popen[bytes]) -> Mapping[str, list[psutil.Process]]:
    """Return the processes that can be killed now, by kind."""
    found: dict[str, list[psutil.Process]] = {"coordinator": [psutil.Process(command.pid)]}
    for child in psutil.Process(command.pid).children(recursive=True):
        STARTED.add(child)
        try:
            line, parent = " ".join(child.cmdline()), child.parent()
        except psutil.NoSuchProcess:
            continue
        if "ExplorerActor" in line:
            found.setdefault("explorer", []).append(child)
        elif "EncoderActor" in line:
            found.setdefault("encoder", []).append(child)
        elif "run-driver" in line:
            found.setdefault("driver", []).append(child)
        elif "headless" in line and "--type=" not in line and parent is not None:
            found.setdefault("browser", []).append(child)
        elif "--type=renderer" in line:
            found.setdefault("renderer", []).append(child)
    return found


def disturbed(url: str, store: Path, chance: random.Random, killed: Counter[str]) -> None:
    """Run to the end, with kills as long as there are not enough of them."""
    deadline = time.monotonic() + PATIENCE_S
    command = start(url, store)
    while time.monotonic() < deadline:
        try:
            command.wait(chance.uniform(SOONEST, LATEST) if killed.total() < KILLS else PATIENCE_S)
        except subprocess.TimeoutExpired:
            try:
                found = victims(command)
                kind = chance.choice(sorted(found))
                chance.choice(found[kind]).kill()
            except psutil.NoSuchProcess:
                continue
            killed[kind] += 1
            continue
        if command.returncode == 0 or is_finished(store):
            return
        command = start(url, store)
    raise SystemExit(f"not finished in {PATIENCE_S:.0f} s, after {dict(killed)}")


def is_finished(store: Path) -> bool:
    """Return whether the map is published and its run has ended. The same command is a new run then, even if killed."""
    if not any(store.glob("sites/*/HEAD")):
        return False
    return any(store.glob("runs/*/report.json")) and not any(store.glob("runs/ledgers/*.sqlite"))


def export(store: Path) -> dict[str, Any]:
    """Return the canonical export of the only map, leads included."""
    opened = Store.open(str(store))
    (site,) = opened.sites()
    version = opened.read(site)
    return to_json(site, 1, version.graph, leads=version.leads)


def _name(process: psutil.Process) -> str:
    try:
        return "" if process.status() == psutil.STATUS_ZOMBIE else process.name()
    except psutil.NoSuchProcess:
        return ""


def main() -> None:
    chance = random.Random(SEED)
    print(f"seed {SEED}, {KILLS} kills")
    requests: list[str] = []

    def answer(request: Request) -> Response:
        requests.append(request.path)
        return page(request)

    with LocalServer(answer) as site, tempfile.TemporaryDirectory() as folder:
        began = time.monotonic()
        if start(site.url, Path(folder, "whole")).wait(PATIENCE_S):
            raise SystemExit("the undisturbed run failed")
        whole_s = time.monotonic() - began
        leaves = Counter(path for path in requests if path.count("/") == 2)
        requests.clear()
        began, whole = time.monotonic(), export(Path(folder, "whole"))
        killed: Counter[str] = Counter()
        repeated = rounds = 0
        same = True
        while killed.total() < KILLS:
            store = Path(folder, f"killed-{rounds}")
            disturbed(site.url, store, chance, killed)
            again = Counter(path for path in requests if path.count("/") == 2)
            requests.clear()
            repeated, rounds = repeated + again.total() - len(again), rounds + 1
            same = same and export(store) == whole
            print(f"round {rounds}: {dict(killed)}, {again.total() - len(again)} loads repeated", flush=True)
        killed_s = time.monotonic() - began
        _, alive = psutil.wait_procs(STARTED, timeout=20)
        left = [name for process in alive if (name := _name(process))]
    document = {
        "seed": SEED,
        "kills": dict(sorted(killed.items())),
        "states": len(whole["nodes"]),
        "edges": len(whole["edges"]),
        "leads": len(whole.get("leads", ())),
        "rounds": rounds,
        "same_map": same,
        "leaf_loads_undisturbed": sum(leaves.values()),
        "leaves": len(leaves),
        "leaf_loads_repeated": repeated,
        "repeated_per_kill": round(repeated / max(1, killed.total()), 2),
        "workers": WORKERS,
        "processes_left": left,
        "seconds_undisturbed": round(whole_s, 1),
        "seconds_with_kills": round(killed_s, 1),
        **run_info(),
    }
    print(json.dumps(document, indent=2))
    write_result(RESULTS / "kills.json", document)
    if not document["same_map"] or left or repeated > WORKERS * killed.total():
        raise SystemExit("FAILED")


if __name__ == "__main__":
    main()
