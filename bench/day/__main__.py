"""Run the service, a refresh in fast motion and agents through a day of faults, and measure what agents notice.

    make soak-day        ARGS="--minutes 20 --work /var/tmp/day --save"

The processes are those of compose.yaml, each service in a PID namespace of its own, without containers and without
Qdrant. Three sites publish pages; each minute a process is killed with SIGKILL. Once the store's disk is full, once all
sites are down, once the clock jumps a day ahead and back, and once the service is stopped for three minutes. It needs
root (mount, unshare), and Debian's packages prometheus, tini and gcc.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from bench.compose_file import fast_refresh, settings_without_qdrant
from bench.day.agents import Agents, counts, longest_gap
from bench.day.clock import ShiftedClock
from bench.day.container import Container
from bench.day.faults import Killer, full_disk, small_disk
from bench.day.monitoring import Prometheus, rules
from bench.day.sites import NAMES, ChangingSite
from bench.day.watch import Freshness, Repeated, Versions
from bench.result_files import RESULTS, quantiles, run_info, write_result

KEY = "a-key-of-this-day-alone"
#: Of the store's file system, in MB.
DISK_MB = 256
PAUSE_S = 5
TOOLS = ("unshare", "tini", "prometheus", "mount", "cc")
#: How long faults last, in seconds. An alert of the service's absence waits two minutes.
DISK_FULL_S, SITES_DOWN_S, CLOCK_S, SERVICE_OFF_S = 75.0, 60.0, 90.0, 170.0
CLOCK_SHIFT_S = 26 * 3600.0
#: Time after the last fault in which the last changes are found, in seconds.
CALM_S = 300.0
READY_S = 240.0
#: The alert that Qdrant is absent waits five minutes from the first evaluation.
QDRANT_ALERT_S = 345.0


@dataclass
class Day:
    """The parts of a day, and what happened."""

    url: str
    folder: Path
    sites: list[ChangingSite]
    containers: dict[str, Container]
    clock: ShiftedClock
    killer: Killer
    freshness: Freshness
    events: list[tuple[float, str]] = field(default_factory=list)
    service_was_off: bool = False

    def note(self, what: str) -> None:
        """Record an event."""
        self.events.append((time.monotonic(), what))
        print(f"{time.strftime('%H:%M:%S')} {what}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.day", description=__doc__.split("\n", 1)[0])
    parser.add_argument("--minutes", type=int, default=20)
    parser.add_argument("--work", type=Path, help="folder for store, logs and data of Prometheus; kept")
    parser.add_argument("--save", action="store_true", help="write bench/results/day.json")
    options = parser.parse_args()
    if missing := [tool for tool in TOOLS if shutil.which(tool) is None]:
        sys.exit(
            f"error: missing: {' '.join(missing)}; on Debian: apt-get install util-linux mount tini prometheus gcc"
        )
    with ExitStack() as stack:
        work = options.work or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="waygraph-day-")))
        work.mkdir(exist_ok=True, parents=True)
        document = {"minutes": options.minutes, **_day(work, options.minutes), **run_info()}
    print(json.dumps(document, indent=1))
    if options.save:
        write_result(RESULTS / "day.json", document)
    if document["failed"]:
        sys.exit(f"FAILED: {', '.join(document['failed'])}")


def _day(work: Path, minutes: int) -> dict[str, Any]:
    with ExitStack() as stack:
        maps = work / "maps"
        stack.enter_context(small_disk(maps, DISK_MB))
        sites = [stack.enter_context(ChangingSite(name)) for name in NAMES]
        clock = ShiftedClock(work)
        port = _free_port()
        url = f"http://127.0.0.1:{port}"
        # Ray's sockets need short paths.
        temporary = {name: Path(stack.enter_context(_short_folder())) for name in ("serve", "refresh")}
        environment = {name: _environment(name, maps, port, work, temporary[name]) for name in temporary}
        _map(sites, environment["refresh"])
        environment = {name: {**values, **clock.environment} for name, values in environment.items()}
        containers = {
            "serve": Container("serve", ["waygraph", "serve"], environment["serve"], work),
            "refresh": Container("refresh", fast_refresh(PAUSE_S), environment["refresh"], work),
        }
        versions = Versions(str(maps))
        headers = {"authorization": f"Bearer {KEY}"}
        freshness = Freshness(url, headers, sites)
        day = Day(url, maps, sites, containers, clock, Killer(containers), freshness)
        with containers["serve"]:
            ready_s = _wait_until_ready(url)
            prometheus = stack.enter_context(
                Prometheus(
                    work / "prometheus", port=_free_port(), service=f"127.0.0.1:{port}", ray_folders=temporary.values()
                )
            )
            with (
                containers["refresh"], Repeated(versions.look), Repeated(freshness.look),
                Agents(url, KEY, sites) as agents,
            ):  # fmt: skip
                began = time.monotonic()
                _faults(day, minutes)
                _calm(day)
                ended = time.monotonic()
            panels, fired = prometheus.panels(), prometheus.fired()
        versions.look()
        verified = subprocess.run(
            ["waygraph", "store", "verify", "--json"],
            env=environment["serve"],
            capture_output=True,
            text=True,
            check=False,
        )
        shutil.copytree(maps / "runs", work / "runs")  # the store is in memory: what a run reports outlives it
        gaps = _gaps(day, agents, ended)
        found = [change.found_after_s for change in freshness.changes if change.found_after_s is not None]
        document: dict[str, Any] = {
            "seconds": round(ended - began),
            "seconds_to_ready": round(ready_s, 1),
            "agents": counts(agents.outcomes),
            "agents_with_retries": counts(agents.client_outcomes),
            "older_versions_answered": agents.regressions,
            "gaps_without_answers": gaps,
            "events": [[round(at - began), what] for at, what in day.events],
            "exits": {
                name: [[round(exit_.at - began), exit_.code] for exit_ in each.exits]
                for name, each in containers.items()
            },
            "versions_published": {site: max(seen) for site, seen in versions.seen.items()},
            "versions_lost": versions.lost(),
            "store": {"exit_code": verified.returncode, **json.loads(verified.stdout or "{}")},
            "changes": len(freshness.changes),
            "changes_not_found": len(freshness.changes) - len(found),
            "fresh_after_s": dict(zip(("median", "max"), quantiles(found, (0.5, 1.0), 0), strict=False)),
            "left_in_temporary_folders": {name: _left(folder) for name, folder in temporary.items()},
            "panels": panels,
            "alerts": _judged(fired, service_was_off=day.service_was_off, seconds=ended - began),
        }
        return {**document, "failed": _failed(document)}


# The services ---------------------------------------------------------------------------------------------------------


def _environment(name: str, maps: Path, port: int, work: Path, temporary: Path) -> dict[str, str]:
    """Return the environment of a service: that of compose.yaml, with this machine's paths."""
    inherited = {key: value for key, value in os.environ.items() if not key.startswith(("RAY_", "WAYGRAPH_"))}
    return {
        **inherited,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "TMPDIR": str(temporary),
        "XDG_CACHE_HOME": str(work / f"cache-{name}"),
        **settings_without_qdrant(name, {"API_KEYS": json.dumps([KEY])}),
        "WAYGRAPH_STORE": str(maps),
        "WAYGRAPH_JOBS__RAY": "true",  # its publisher is killed, and its metrics are watched
        "WAYGRAPH_SERVE__HOST": "127.0.0.1",
        "WAYGRAPH_SERVE__PORT": str(port),
    }


@contextmanager
def _short_folder() -> Iterator[str]:
    with tempfile.TemporaryDirectory(prefix="wgd", dir="/tmp", ignore_cleanup_errors=True) as folder:
        yield folder


def _free_port() -> int:
    with socket.socket() as opened:
        opened.bind(("127.0.0.1", 0))
        return int(opened.getsockname()[1])


def _map(sites: list[ChangingSite], environment: dict[str, str]) -> None:
    words = ["waygraph", "index", *(site.url for site in sites), "--json"]
    done = subprocess.run(words, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]


def _wait_until_ready(url: str) -> float:
    began = time.monotonic()
    with httpx.Client(trust_env=False, timeout=10) as http:
        while time.monotonic() - began < READY_S:
            try:
                if http.get(f"{url}/readyz").is_success:
                    return time.monotonic() - began
            except httpx.TransportError:
                pass
            time.sleep(0.2)
    raise AssertionError(f"{url} was never ready")


# The faults -----------------------------------------------------------------------------------------------------------


def _faults(day: Day, minutes: int) -> None:
    """Kill a process in each minute; let the other faults happen once, at their share of the time."""
    others: list[tuple[float, Callable[[Day], None]]] = [
        (0.25, _fill_disk), (0.45, _take_sites_down), (0.6, _move_clock),
    ]  # fmt: skip
    if minutes * 60 > 4 * SERVICE_OFF_S:
        others.append((0.75, _switch_service_off))
    began = time.monotonic()
    minute = 0
    while others or time.monotonic() - began < minutes * 60:
        if others and time.monotonic() - began >= others[0][0] * minutes * 60:
            others.pop(0)[1](day)
        if minute % 2 == 0:
            day.freshness.change()
        minute += 1
        kill = day.killer.kill_next()
        day.note(f"killed: {kill.kind}" if kill is not None else "nothing to kill")
        time.sleep(60)


def _fill_disk(day: Day) -> None:
    day.note("disk full")
    with full_disk(day.folder):
        day.freshness.change()
        time.sleep(DISK_FULL_S)
    day.note("disk has room")


def _take_sites_down(day: Day) -> None:
    day.note("sites answer 503")
    for site in day.sites:
        site.is_down = True
    time.sleep(SITES_DOWN_S)
    for site in day.sites:
        site.is_down = False
    day.note("sites answer")


def _move_clock(day: Day) -> None:
    day.note(f"clock {CLOCK_SHIFT_S / 3600:.0f} h ahead")
    day.clock.shift(CLOCK_SHIFT_S)
    day.freshness.change()
    time.sleep(CLOCK_S)
    day.clock.shift(0.0)
    day.note("clock right again")


def _switch_service_off(day: Day) -> None:
    serve = day.containers["serve"]
    end = serve.stop()
    day.note(f"service off, exit code {end.code if end else None}")
    time.sleep(SERVICE_OFF_S)
    serve.start()
    day.note(f"service on, ready after {_wait_until_ready(day.url):.1f} s")
    day.service_was_off = True


def _calm(day: Day) -> None:
    """Wait until the last changes are found."""
    deadline = time.monotonic() + CALM_S
    while time.monotonic() < deadline and any(each.found_after_s is None for each in day.freshness.changes):
        time.sleep(1)


# The result -----------------------------------------------------------------------------------------------------------


def _gaps(day: Day, agents: Agents, ended: float) -> list[dict[str, Any]]:
    """Return the longest time without an answer after each event."""
    ends = [at for at, _ in day.events[1:]] + [ended]
    return [
        {"after": what, "seconds": longest_gap(agents.outcomes, at, until)}
        for (at, what), until in zip(day.events, ends, strict=True)
    ]


def _left(folder: Path) -> dict[str, int]:
    files = [path for path in folder.rglob("*") if path.is_file() and not path.is_symlink()]
    return {"folders": sum(1 for _ in folder.iterdir()), "bytes": sum(path.stat().st_size for path in files)}


def _judged(fired: dict[str, Any], *, service_was_off: bool, seconds: float) -> dict[str, Any]:
    """Compare the alerts that fired with those that must: Qdrant is missing here, and the service was off."""
    must = {"WaygraphQdrantDown"} if seconds > QDRANT_ALERT_S else set()
    must |= {"WaygraphDown"} if service_was_off else set()
    allowed = must | {"WaygraphQdrantDown"}
    silent = {rule["alert"] for group in rules()["groups"] for rule in group["rules"]} - set(fired)
    return {
        "fired": fired,
        "missing": sorted(must - set(fired)),
        "unexpected": sorted(set(fired) - allowed),
        "silent": sorted(silent - must),
    }


def _failed(document: dict[str, Any]) -> list[str]:
    problems = {
        "versions lost": document["versions_lost"],
        "store damaged": document["store"]["exit_code"],
        "older versions answered": document["older_versions_answered"],
        "changes not found": document["changes_not_found"],
        "alerts missing": document["alerts"]["missing"],
        "unexpected alerts": document["alerts"]["unexpected"],
    }
    return [name for name, problem in problems.items() if problem]


if __name__ == "__main__":
    main()
