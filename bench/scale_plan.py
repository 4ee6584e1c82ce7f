"""Capacity plan for mapping many sites: cores, GPU hours, bytes, requests and cost, computed from measured runs.

    python -m bench.scale_plan [--sites 1000000] [--states 30,100] [--days 7] [--price core_hour=0.04 ...]

Prints a table in Markdown: each quantity with its formula, and the inputs, each with its source. Measured inputs come
from bench/results; the source of an unmeasured input says how it was estimated. Prices are given by the user:
`core_hour`, `gpu_hour`, `gb_month` (object store), `put_1000`, `head_1000`, `qdrant_gb_month`; without any there is no
cost.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results"
#: Of one state: screenshot, DOM, accessibility snapshot.
BLOBS_PER_STATE = 3
#: Requests of publishing, besides those for blobs (docs/store.md; a test counts them).
REQUESTS_PER_VERSION = 25
PRICES = ("core_hour", "gpu_hour", "gb_month", "put_1000", "head_1000", "qdrant_gb_month")


@dataclass(frozen=True, slots=True)
class Input:
    """A number and its source."""

    value: float
    unit: str
    source: str


@dataclass(frozen=True, slots=True)
class Need:
    """A quantity and its formula."""

    name: str
    value: float
    unit: str
    formula: str


def inputs(results: Path = RESULTS) -> dict[str, Input]:
    """Return the inputs of a plan by their symbols in the formulas."""
    sites = _read(results, "sites")["sites"]
    cores = int(_read(results, "sites")["machine"].split()[0])
    per_state = cores * sum(site["seconds"] for site in sites) / sum(site["states"] for site in sites)
    scale = _read(results, "scale")
    whole = [row for row in scale["rows"] if row["whole"] and row["shrink"] > 1]
    small, full = max(whole, key=lambda row: row["sites"]), next(r for r in scale["rows"] if r["shrink"] == 1)
    site_ms, state_ms = line_through(
        (small["states_per_site"], small["cpu_ms_per_site"]["all"]["publisher"]),
        (full["states_per_site"], full["cpu_ms_per_site"]["all"]["publisher"]),
    )
    largest = max(scale["rows"], key=lambda row: row["sites"])
    shop = scale["shop"]
    encoded = _read(results, "encode-gpu")["actor"]
    runs = f"bench/results/scale.json, {small['sites']} sites of {small['states_per_site']} states"
    return {
        "c": Input(
            per_state,
            "core-seconds a state",
            f"bench/results/sites.json: {cores} cores x all seconds / all states of {len(sites)} sites; "
            "idle cores are counted too, so this is an upper bound",
        ),
        "e": Input(
            encoded["images_per_s"],
            "images a second",
            f"bench/results/encode-gpu.json: one {encoded['card']}, shapes of jina-embeddings-v4, 602,112 pixels",
        ),
        "v": Input(
            191_392.0,
            "bytes a state",
            "docs/search.md (`bench.search --part sizes`): 746 vectors of 128 in float16, Edge; no server was tried",
        ),
        "t": Input(6 * 384 * 2.0, "bytes a state", "6 vectors of 384 in float16, the default encoder's; values alone"),
        "b": Input(
            shop["blob_bytes_per_state"], "bytes a state", f"bench/results/scale.json, shop: {shop['states']} states"
        ),
        "m": Input(
            shop["version_bytes_per_state"],
            "bytes a state",
            "the same: tables and manifest, with vectors of the default encoder",
        ),
        "k": Input(
            max(small["cpu_ms_per_site"]["all"]["coordinator"], full["cpu_ms_per_site"]["all"]["coordinator"]),
            "ms of CPU a site",
            f"bench/results/scale.json, sites of {full['states_per_site']} states, which report progress most often",
        ),
        "q": Input(
            largest["memory_bytes_per_site"]["coordinator"],
            "bytes a site",
            f"bench/results/scale.json, {largest['sites']} sites: growth of the coordinator's memory per site",
        ),
        "p0": Input(site_ms, "ms of CPU a site", f"{runs}, and {full['sites']} of {full['states_per_site']}: a line"),
        "p1": Input(state_ms, "ms of CPU a state", "the same line"),
    }  # fmt: skip


def line_through(one: tuple[float, float], other: tuple[float, float]) -> tuple[float, float]:
    """Offset and slope.

    >>> line_through((1, 5.0), (3, 9.0))
    (3.0, 2.0)
    """
    slope = (other[1] - one[1]) / (other[0] - one[0])
    return one[1] - slope * one[0], slope


def needs(given: Mapping[str, Input], *, sites: int, states: float, days: float) -> list[Need]:
    """Return the resources to map `sites` sites of `states` states each, once, within `days` days."""
    v = {symbol: each.value for symbol, each in given.items()}
    total = sites * states
    core_hours = total * v["c"] / 3600
    publisher_hours = sites * (v["p0"] + v["p1"] * states) / 3.6e6
    return [
        Need("browsers", core_hours, "core-hours", "N S c / 3600"),
        Need(f"browsers, done in {days:g} days", core_hours / 24 / days, "cores", "N S c / (86400 D)"),
        Need("encoding screenshots", total / v["e"] / 3600, "GPU-hours", "N S / (3600 e)"),
        Need("vectors in Qdrant, screenshots", total * v["v"] / 1e9, "GB", "N S v"),
        Need("vectors in Qdrant, default encoder", total * v["t"] / 1e9, "GB", "N S t"),
        Need("object store", total * (v["b"] + v["m"]) / 1e9, "GB", "N S (b + m)"),
        Need("object store, screenshots encoded", total * (v["b"] + v["m"] + v["v"]) / 1e9, "GB", "N S (b + m + v)"),
        Need("PUT requests", sites * (BLOBS_PER_STATE * states + REQUESTS_PER_VERSION) / 1e6, "million", "N (3S + 25)"),
        Need("HEAD requests", total * BLOBS_PER_STATE / 1e6, "million", "3 N S"),
        Need("coordinator", sites * v["k"] / 3.6e6, "core-hours", "N k / 3600000"),
        Need("coordinator's memory, one run", sites * v["q"] / 1e9, "GB", "N q"),
        Need("publishing", publisher_hours, "core-hours", "N (p0 + p1 S) / 3600000"),
        Need(f"runs at once, for {days:g} days", publisher_hours / 24 / days, "runs", "N (p0 + p1 S) / (86400000 D)"),
    ]  # fmt: skip


def cost(found: Sequence[Need], prices: Mapping[str, float]) -> float:
    """Return the cost of mapping once, encoding and a month of storage; resources without a price are free."""
    by_name = {need.name: need.value for need in found}
    cores = by_name["browsers"] + by_name["coordinator"] + by_name["publishing"]
    return (
        cores * prices.get("core_hour", 0.0)
        + by_name["encoding screenshots"] * prices.get("gpu_hour", 0.0)
        + by_name["object store, screenshots encoded"] * prices.get("gb_month", 0.0)
        + by_name["PUT requests"] * 1000 * prices.get("put_1000", 0.0)
        + by_name["HEAD requests"] * 1000 * prices.get("head_1000", 0.0)
        + by_name["vectors in Qdrant, screenshots"] * prices.get("qdrant_gb_month", 0.0)
    )


def table(
    given: Mapping[str, Input], *, sites: int, states: Sequence[float], days: float, prices: Mapping[str, float]
) -> str:
    """Markdown: the needs for each number of states, then the inputs."""
    columns = [needs(given, sites=sites, states=each, days=days) for each in states]
    head = " | ".join(f"S = {each:g}" for each in states)
    lines = [f"| N = {sites:,} sites | {head} | | formula |", "| --- |" + " --- |" * (len(states) + 2)]
    for row in zip(*columns, strict=True):
        values = " | ".join(_number(need.value) for need in row)
        lines.append(f"| {row[0].name} | {values} | {row[0].unit} | `{row[0].formula}` |")
    if prices:
        values = " | ".join(_number(cost(column, prices)) for column in columns)
        lines.append(f"| cost, with {', '.join(f'{k}={v:g}' for k, v in prices.items())} | {values} | | |")
    lines += ["", "| | value | unit | source |", "| --- | --- | --- | --- |"]
    lines += [f"| `{symbol}` | {_number(each.value)} | {each.unit} | {each.source} |" for symbol, each in given.items()]
    return "\n".join(lines)


def _number(value: float) -> str:
    """Three digits, as far as the inputs carry.

    >>> _number(1234567.0), _number(2.7812), _number(0.012345)
    ('1,230,000', '2.78', '0.0123')
    """
    rounded = float(f"{value:.3g}")
    return f"{rounded:,.0f}" if abs(rounded) >= 100 else f"{rounded:g}"


def _read(results: Path, name: str) -> dict[str, Any]:
    document: dict[str, Any] = json.loads((results / f"{name}.json").read_text(encoding="utf-8"))
    return document


def _price(text: str) -> tuple[str, float]:
    name, _, value = text.partition("=")
    if name not in PRICES:
        raise argparse.ArgumentTypeError(f"'{name}' is none of {', '.join(PRICES)}")
    return name, float(value)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sites", type=int, default=1_000_000)
    parser.add_argument("--states", default="30,100", help="states of a site, comma separated")
    parser.add_argument("--days", type=float, default=7.0)
    parser.add_argument("--price", type=_price, action="append", default=[], help="name=value, repeatable")
    arguments = parser.parse_args()
    states = [float(each) for each in arguments.states.split(",")]
    made = table(inputs(), sites=arguments.sites, states=states, days=arguments.days, prices=dict(arguments.price))
    sys.stdout.write(made + "\n")


if __name__ == "__main__":
    main()
