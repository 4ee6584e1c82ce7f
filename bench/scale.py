"""Benchmark of bulk runs by number of sites: the real coordinator, queue and publisher with synthetic sites.

    python -m bench.scale [--sites 1000,10000,100000] [--save]

Each size is one `run_index` in a process and with a Ray of its own: the coordinator (`waygraph.pipeline.jobs.run`),
run state and report, Ray actors for exploring, encoding and publishing, and a store on this disk are real. Exploring is
a stand-in (`bench.scale_site`): sites are drawn, seeded, from the measured runs in bench/results/sites.json, with fewer
states (`--shrink`) and in less time, so that sites come in at a rate (`--rate`) that leaves the machine some room.

Beyond `--whole` (10,000) sites nothing is published: captures go through the coordinator, Ray's object store and the
publisher's queue, and the publisher answers without encoding or writing anything (`bench.scale_site.UnwrittenMaps`).
The last row maps a few sites with as many states as were measured (`--full-size`): what a state costs, besides a site.
`--shop` measures instead what a state of the demo shop takes in a store, with a real browser and the default encoder.
`--save` keeps rows of other sizes.

Measured: CPU time of coordinator, publisher and the others per site, memory (PSS, shared memory counted once) over the
run, how long an explorer that is free waits for its next site and an explored site for its publication, files and bytes
in the store. CPU time and memory hardly depend on what else runs on the machine; waiting does. It fails when the
coordinator or the publisher takes more than 1.5 times the CPU per site in the last third than in the first.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import threading
import time
from array import array
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

import psutil

from bench import scale_site
from bench.result_files import quantiles_ms, run_info, write_result
from waygraph.core.settings import Settings
from waygraph.demo_site import DemoSite
from waygraph.index.store import Store
from waygraph.pipeline.browser.process.process_tree import command_line, descendants, memory_bytes
from waygraph.pipeline.jobs import run_index
from waygraph.pipeline.jobs.events import JobEvent, SiteFinished, SitePhase
from waygraph.pipeline.jobs.report.outcomes import SiteOutcome
from waygraph.pipeline.jobs.run import publisher

RESULTS = Path(__file__).parent / "results" / "scale.json"
EXPLORE = "bench.scale_site:explore_site"
ENCODER = "bench.scale_site:create_encoder"
SEED = 1
#: So often during a run CPU time and memory are read.
LOOKS = 30
#: CPU per site in the last third, as a multiple of that in the first, that still counts as flat.
FLAT = 1.5
_TICK_S = 1 / os.sysconf("SC_CLK_TCK")
#: What a process is, by its command line.
KINDS = {
    "ray::PublisherActor": "publisher",
    "ray::UnwrittenMaps": "publisher",
    "ray::ExplorerActor": "explorers",
    "ray::EncoderActor": "encoder",
}


def kind_of(each: psutil.Process) -> str:
    """Return the kind of a process; `ray` for Ray's daemons."""
    if each.pid == os.getpid():
        return "coordinator"
    command = " ".join(command_line(each))
    return next((kind for mark, kind in KINDS.items() if command.startswith(mark)), "ray")


class Watch:
    """Follows a run by its events, and samples its processes periodically in a thread of its own."""

    def __init__(self, sites: int) -> None:
        # Not at the end, when Ray ends.
        self._due = [max(1, round(sites * (look + 1) / (LOOKS + 1))) for look in range(LOOKS)]
        self._looks: list[dict[str, Any]] = []
        self._look = threading.Event()
        self._ended = False
        self._own_cpu = 0.0
        self.finished = 0
        self.status: Counter[str] = Counter()
        self.states = 0
        self.handed_over: dict[str, float] = {}
        self.began: dict[int, array[float]] = defaultdict(lambda: array("d"))
        self.ended: dict[int, array[float]] = defaultdict(lambda: array("d"))
        self.noticed, self.outside, self.total, self.writing = (array("f") for _ in range(4))
        self._thread = threading.Thread(target=self._follow, daemon=True)
        self._thread.start()

    def __call__(self, event: JobEvent) -> None:
        """Take in an event, in the coordinator's event loop."""
        if isinstance(event, SitePhase) and event.phase == "encoding":
            self.handed_over[event.site] = time.monotonic()
        elif isinstance(event, SiteFinished):
            self._take(event.outcome)
            self.finished += 1
            if self._due and self.finished >= self._due[0]:
                self._due.pop(0)
                self._look.set()

    def _take(self, outcome: SiteOutcome) -> None:
        self.status[outcome.status] += 1
        now, handed_over = time.monotonic(), self.handed_over.pop(outcome.site, None)
        if outcome.exploration is None or outcome.publication is None or handed_over is None:
            return
        counters = outcome.exploration.counters
        self.states += outcome.exploration.states
        ended = counters["scale/ended_us"] / 1e6
        self.began[counters["scale/process"]].append(counters["scale/began_us"] / 1e6)
        self.ended[counters["scale/process"]].append(ended)
        made = outcome.publication
        self.noticed.append(handed_over - ended)
        self.total.append(now - ended)
        self.outside.append(now - handed_over - made.encode_seconds - made.publish_seconds)
        self.writing.append(made.publish_seconds)

    def _follow(self) -> None:
        while not self._ended:
            if self._look.wait(0.5):
                self._look.clear()
                self.look()

    def look(self) -> None:
        """Read CPU time and memory of all processes."""
        began = time.thread_time()
        ourselves = psutil.Process()
        cpu: dict[str, float] = defaultdict(float)
        members: dict[str, list[psutil.Process]] = defaultdict(list)
        for each in descendants([ourselves]):
            kind = kind_of(each)
            members[kind].append(each)
            if kind != "coordinator":
                cpu[kind] += cpu_seconds(each.pid)
        if "publisher" not in members:
            return
        memory = {kind: memory_bytes(processes) for kind, processes in members.items()}
        cpu["coordinator"] = time.process_time() - self._own_cpu
        self._looks.append({"at": time.monotonic(), "sites": self.finished, "cpu": dict(cpu), "memory": memory})
        self._own_cpu += time.thread_time() - began

    def close(self) -> list[dict[str, Any]]:
        """End the thread; returns what was seen."""
        self._ended = True
        self._thread.join()
        return self._looks

    def waits_of_explorers(self, at_once: int) -> list[float]:
        """How long each free place of an explorer waited for its next site, in seconds.

        The places of a process are alike: the next site that it begins goes to whichever became free first.
        """
        waits: list[float] = []
        for pid, begins in self.began.items():
            places = max(1, at_once // len(self.began))
            pairs = zip(sorted(begins)[places:], sorted(self.ended[pid]), strict=False)
            waits += [max(0.0, begin - end) for begin, end in pairs]
        return waits


def cpu_seconds(pid: int) -> float:
    """CPU time that a process has used; 0 when it has ended."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) * _TICK_S


def per_site_ms(looks: Sequence[Mapping[str, Any]], kind: str) -> float:
    """Return CPU time per site between the first and the last sample, in milliseconds."""
    first, last = looks[0], looks[-1]
    used: float = last["cpu"].get(kind, 0.0) - first["cpu"].get(kind, 0.0)
    sites: int = last["sites"] - first["sites"]
    return 1000 * used / max(1, sites)


def spread(seconds: Sequence[float]) -> dict[str, float]:
    """Return quantiles of durations in milliseconds."""
    return quantiles_ms([1000 * each for each in seconds], 1)


def in_store(folder: Path) -> dict[str, float]:
    """Files and bytes of a store, by what they are. Bytes are lengths of files, not blocks of the disk."""
    found: Counter[str] = Counter()
    for name in ("sites", "blobs", "runs"):
        for place, _, files in os.walk(folder / name):
            found[f"{name}_files"] += len(files)
            found[f"{name}_bytes"] += sum(Path(place, file).stat().st_size for file in files)
    return dict(found)


def measure(sites: int, *, whole: bool, shrink: float, rate: float, at_once: int) -> dict[str, Any]:
    """Map a number of synthetic sites in this process; the module's docstring lists the results."""
    seconds = fmean(
        scale_site.drawn(number, seed=SEED, shrink=shrink).seconds for number in range(min(sites, 1000))
    )  # of exploring a site, unscaled
    speed = seconds * rate / at_once
    how = {"seed": SEED, "shrink": shrink, "speed": speed, "blobs": float(whole)}
    urls = [scale_site.address(number, **how) for number in range(sites)]
    if not whole:
        vars(publisher)["_PUBLISHER"] = "bench.scale_site:UnwrittenMaps"
    with tempfile.TemporaryDirectory() as folder:
        settings = Settings(
            store=f"{folder}/maps", encode={"encoder": ENCODER}, jobs={"ray": True, "sites_at_once": at_once}
        )
        watch, began = Watch(sites), time.monotonic()
        report = run_index(urls, settings=settings, on_event=watch, explore=EXPLORE)
        took, peak_bytes = time.monotonic() - began, _peak_bytes()
        looks = watch.close()
        row = {
            "sites": sites,
            "whole": whole,
            "shrink": shrink,
            "speed": round(speed, 1),
            "sites_at_once": at_once,
            "offered_per_s": rate,
            "seconds": round(took, 1),
            "status": dict(watch.status),
            "states_per_site": round(watch.states / max(1, watch.finished), 2),
            "exit_code": report.exit_code,
            **_statistics_of(looks),
            "coordinator_peak_mib_with_report": peak_bytes >> 20,
            "explorer_waits_for_a_site": spread(watch.waits_of_explorers(at_once)),
            "explored_until_the_coordinator_knows": spread(watch.noticed),
            "waits_for_the_publisher": spread(watch.outside),
            "writing_the_version": spread(watch.writing),
            "explored_until_published": spread(watch.total),
        }
        if whole:
            row["store"] = _store_of(Path(settings.store), sites)
        report_bytes = Path(settings.store, "runs", report.run_id, "report.json").stat().st_size
        row["report_bytes_per_site"] = round(report_bytes / sites)
    return row


def _statistics_of(looks: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    third = max(1, len(looks) // 3)
    kinds = ("coordinator", "publisher", "explorers", "encoder", "ray")
    spans = {"all": looks, "first_third": looks[: third + 1], "last_third": looks[-third - 1 :]}
    cpu = {name: {kind: round(per_site_ms(span, kind), 2) for kind in kinds} for name, span in spans.items()}
    growth = {
        kind: round(cpu["last_third"][kind] / cpu["first_third"][kind], 3) if cpu["first_third"][kind] else 0.0
        for kind in ("coordinator", "publisher")
    }
    first, last = looks[third], looks[-1]
    sites = max(1, last["sites"] - first["sites"])
    per_site = {kind: round((last["memory"].get(kind, 0) - first["memory"].get(kind, 0)) / sites) for kind in kinds}
    return {
        "sites_per_s": round((last["sites"] - looks[0]["sites"]) / max(1e-9, last["at"] - looks[0]["at"]), 2),
        "cpu_ms_per_site": cpu,
        "cpu_growth": growth,
        "memory_mib_at_the_end": {kind: last["memory"].get(kind, 0) >> 20 for kind in kinds},
        "memory_bytes_per_site": per_site,
        "looks": [
            {
                "sites": look["sites"],
                "memory_mib": {kind: look["memory"].get(kind, 0) >> 20 for kind in kinds},
                "cpu_s": {kind: round(look["cpu"].get(kind, 0.0), 2) for kind in kinds},
            }
            for look in looks
        ],
    }


def _store_of(folder: Path, sites: int) -> dict[str, float]:
    store = Store.open(str(folder))
    began = time.process_time()
    assert len(store.heads()) == sites
    heads_s = time.process_time() - began
    found = in_store(folder)
    return {
        **{f"{name}_per_site": round(count / sites, 1) for name, count in found.items()},
        "cpu_ms_to_list_1000_sites": round(1e6 * heads_s / sites, 1),
    }


def _peak_bytes() -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    return 0


def in_a_process(**how: float) -> dict[str, Any]:
    """`measure` in a process of its own, whose memory and Ray are nobody else's."""
    with tempfile.TemporaryDirectory() as folder:
        result = Path(folder) / "row.json"
        command = [sys.executable, "-m", "bench.scale", "--row", json.dumps(how), "--result", str(result)]
        subprocess.run(command, check=True)
        row: dict[str, Any] = json.loads(result.read_text())
    return row


def line(row: Mapping[str, Any]) -> str:
    """Return a row as text."""
    cpu, growth, memory = row["cpu_ms_per_site"]["all"], row["cpu_growth"], row["memory_bytes_per_site"]
    end, store = row["memory_mib_at_the_end"], row.get("store")
    lines = [
        f"{row['sites']:>7} sites, {'whole' if row['whole'] else 'unwritten'}, {row['states_per_site']} states each",
        f"{row['sites_per_s']} of {row['offered_per_s']} offered per second, {row['seconds']:.0f} s, {row['status']}",
        (
            f"CPU ms a site: coordinator {cpu['coordinator']}, publisher {cpu['publisher']}, "
            f"explorers {cpu['explorers']}, encoder {cpu['encoder']}, Ray {cpu['ray']}"
        ),
        f"last third / first: coordinator {growth['coordinator']}, publisher {growth['publisher']}",
        (
            f"memory at the end, MiB: coordinator {end['coordinator']} "
            f"({row['coordinator_peak_mib_with_report']} with the report), publisher {end['publisher']}, "
            f"explorers {end['explorers']}, Ray {end['ray']}"
        ),
        (
            f"memory, bytes a site: coordinator {memory['coordinator']}, publisher {memory['publisher']}, "
            f"explorers {memory['explorers']}, Ray {memory['ray']}"
        ),
        (
            f"waits, p50/p99 ms: explorer for a site {_pair(row['explorer_waits_for_a_site'])}, explored site for the "
            f"publisher {_pair(row['waits_for_the_publisher'])}, published {_pair(row['explored_until_published'])}"
        ),
    ]
    if store:
        files, size = (store[f"sites_{unit}_per_site"] + store[f"blobs_{unit}_per_site"] for unit in ("files", "bytes"))
        lines.append(f"store: {files:.1f} files and {size / 1000:.0f} kB a site")
    return "\n        ".join(lines)


def _pair(found: Mapping[str, float]) -> str:
    return f"{found['p50_ms']:.0f}/{found['p99_ms']:.0f}"


def problems_of(row: Mapping[str, Any]) -> list[str]:
    """Return the differences from the expected result."""
    name = f"{row['sites']} sites"
    found = [
        f"{name}: {kind} takes {growth} times the CPU per site in the last third"
        for kind, growth in row["cpu_growth"].items()
        if growth > FLAT and row["sites"] >= 1000  # fewer tell nothing
    ]
    if row["status"] != {"published": row["sites"]}:
        found.append(f"{name}: {row['status']}")
    return found


def main() -> int:
    """Measure every size, print, save."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sites", default="1000,10000,100000", help="sizes, comma separated")
    parser.add_argument("--whole", type=int, default=10_000, help="up to so many sites are published for real")
    parser.add_argument("--shrink", type=float, default=30.0, help="divides the number of states of a site")
    parser.add_argument("--full-size", type=int, default=60, help="sites of the last row, none: 0")
    parser.add_argument("--rate", type=float, default=10.0, help="sites a second that are explored, when published")
    parser.add_argument("--rate-unwritten", type=float, default=80.0, help="and when not")
    parser.add_argument("--at-once", type=int, default=8, help="sites explored at once")
    parser.add_argument("--shop", action="store_true", help="only what a state of the demo shop takes in a store")
    parser.add_argument("--note", default="", help="kept with the results: what else ran on the machine")
    parser.add_argument("--save", action="store_true", help=f"write {RESULTS.name}")
    parser.add_argument("--row", type=json.loads, help=argparse.SUPPRESS)
    parser.add_argument("--result", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.row:
        arguments.result.write_text(json.dumps(measure(**arguments.row)))
        return 0
    rows: list[dict[str, Any]] = []
    if arguments.shop:
        found = shop()
        sys.stdout.write(f"shop: {found}\n")
        if arguments.save:
            save([], {**found, "ran": ran(arguments.note)})
        return 0
    for sites in map(int, filter(None, arguments.sites.split(","))):
        whole = sites <= arguments.whole
        rate = arguments.rate if whole else arguments.rate_unwritten
        how = {"sites": sites, "whole": whole, "shrink": arguments.shrink, "rate": rate, "at_once": arguments.at_once}
        rows.append(in_a_process(**how))
        sys.stdout.write(line(rows[-1]) + "\n")
        sys.stdout.flush()
    if arguments.full_size:
        how = {"sites": arguments.full_size, "whole": True, "shrink": 1.0, "rate": 0.5, "at_once": arguments.at_once}
        rows.append(in_a_process(**how))
        sys.stdout.write(line(rows[-1]) + "\n")
    for row in rows:
        row["ran"] = ran(arguments.note)
    problems = [problem for row in rows for problem in problems_of(row)]
    sys.stdout.write("".join(f"FAILED: {problem}\n" for problem in problems))
    if arguments.save:
        save(rows)
    return 1 if problems else 0


def shop() -> dict[str, float]:
    """Return the bytes of a demo shop state in a store, explored by a real browser, encoded by the default encoder."""
    with tempfile.TemporaryDirectory() as folder, DemoSite() as site:
        settings = Settings(store=f"{folder}/maps", explore={"depth": 3})
        (outcome,) = run_index([site.url], settings=settings, on_event=lambda _: None).sites
        assert outcome.publication is not None, outcome.error
        found, states = in_store(Path(settings.store)), outcome.publication.states
    return {
        "states": states,
        "blob_bytes_per_state": round(found["blobs_bytes"] / states),
        "blob_files_per_state": round(found["blobs_files"] / states, 2),
        "version_bytes_per_state": round(found["sites_bytes"] / states),
    }


def ran(note: str) -> dict[str, str]:
    """Return date, machine and note of a measurement."""
    return {
        **run_info(),
        "python": platform.python_version(),
        "note": note,
    }


def save(rows: Sequence[dict[str, Any]], of_shop: Mapping[str, Any] | None = None) -> None:
    """Replace the rows of these sizes, and what is known of the shop, in the results; keep the others."""
    before = json.loads(RESULTS.read_text()) if RESULTS.exists() else {"rows": []}
    by_size = {(row["shrink"] == 1.0, row["sites"]): row for row in [*before["rows"], *rows]}
    document = {
        "seed": SEED,
        "drawn_from": "bench/results/sites.json",
        "unwritten": "rows that are not whole: no blobs, vectors, tables, journals, and no HEAD; all the rest is real",
        "shop": of_shop or before.get("shop"),
        "rows": [by_size[size] for size in sorted(by_size)],
    }
    write_result(RESULTS, document)


if __name__ == "__main__":
    sys.exit(main())
