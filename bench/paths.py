"""Benchmark of path queries: time per query on graphs of 10,000 states and 100,000 edges.

    python -m bench.paths [--queries 500] [--save]

Prints p50, p99 and the slowest of random queries, as wall time and (for busy machines) as CPU time of the thread, for
several graphs: random ones, one shaped like a site (a tree of sections with navigation on every page), and a grid,
which is the hardest case for any search without coordinates: without goto, its queries do take more than 5 ms.
`--save` also writes bench/results/paths.json.
"""

from __future__ import annotations

import argparse
import os
import platform
import random
import time
from collections.abc import Iterator

from bench.result_files import RESULTS, quantiles_ms, run_info, write_result
from waygraph.core.errors import NoPath
from waygraph.index.graph import Action, Edge, InteractionGraph, Node
from waygraph.index.graph.paths import PathFinder

STATES = 10_000
EDGES = 100_000


def states(count: int, addressable: float, rng: random.Random) -> list[Node]:
    return [
        Node(f"{i:032x}", f"http://site/{i}", f"State {i}", (), 0, rng.random() < addressable, rng.uniform(200, 3000))
        for i in range(count)
    ]


def edge(nodes: list[Node], source: int, target: int, rng: random.Random, nth: int = 0) -> Edge:
    action = Action("click", role="link", name=f"to {target}", nth=nth)
    return Edge(nodes[source].id, nodes[target].id, action, cost_ms=rng.uniform(50, 1500))


def random_graph(rng: random.Random, addressable: float) -> InteractionGraph:
    nodes = states(STATES, addressable, rng)
    pairs = ((rng.randrange(STATES), rng.randrange(STATES)) for _ in range(EDGES))
    return InteractionGraph(nodes, (edge(nodes, s, t, rng, i) for i, (s, t) in enumerate(pairs)))


def site_graph(rng: random.Random) -> InteractionGraph:
    """Return a tree with 8 children per state; each also links to its parent and to the start page's 8 sections."""
    nodes = states(STATES, 0.5, rng)

    def links() -> Iterator[Edge]:
        for i in range(1, STATES):
            yield edge(nodes, (i - 1) // 8, i, rng)
            yield edge(nodes, i, (i - 1) // 8, rng)
            for section in range(1, 9):
                yield edge(nodes, i, section, rng, nth=1)

    return InteractionGraph(nodes, links())


def grid_graph(rng: random.Random) -> InteractionGraph:
    """100 x 100 states, 4 neighbours each: long paths, and half of the states lie nearer than the target."""
    nodes = states(STATES, 0.01, rng)

    def links() -> Iterator[Edge]:
        for i in range(STATES):
            row, column = divmod(i, 100)
            for r, c in ((row + 1, column), (row - 1, column), (row, column + 1), (row, column - 1)):
                if 0 <= r < 100 and 0 <= c < 100:
                    yield edge(nodes, i, r * 100 + c, rng)

    return InteractionGraph(nodes, links())


def measure(
    name: str, finder: PathFinder, ids: list[str], *, goto: bool, queries: int, rng: random.Random
) -> dict[str, object]:
    wall, cpu, missing = [], [], 0
    for _ in range(queries):
        source, target = rng.choice(ids), rng.choice(ids)
        began, began_cpu = time.perf_counter(), time.thread_time()
        try:
            finder.cheapest_path(source, target, allow_goto=goto)
        except NoPath:
            missing += 1
        wall.append((time.perf_counter() - began) * 1000)
        cpu.append((time.thread_time() - began_cpu) * 1000)
    row = {"graph": name, "goto": goto, "queries": queries, "no_path": missing}
    for clock, times in (("wall", wall), ("cpu", cpu)):
        row |= {f"{clock}_{name}": value for name, value in quantiles_ms(times).items()}
        row[f"{clock}_over_5_ms"] = sum(t > 5 for t in times)
    print(f"{name:<27} goto={goto!s:<5}", end="")
    for clock in ("wall", "cpu"):
        p50, p99, slowest = (row[f"{clock}_{which}_ms"] for which in ("p50", "p99", "max"))
        print(f"  {clock}: p50 {p50:6.3f} p99 {p99:7.3f} max {slowest:7.3f} ms", end="")
    print(f"  over 5 ms: {row['wall_over_5_ms']}/{queries} (cpu {row['cpu_over_5_ms']})", end="")
    print(f"  no path: {missing}" if missing else "")
    return row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--queries", type=int, default=500)
    parser.add_argument("--save", action="store_true", help="write bench/results/paths.json")
    arguments = parser.parse_args()
    rows = []
    for name, graph in (
        ("random, 50% addressable", random_graph(random.Random(1), 0.5)),
        ("random, 1% addressable", random_graph(random.Random(2), 0.01)),
        ("site-like, 50% addressable", site_graph(random.Random(3))),
        ("grid, 1% addressable", grid_graph(random.Random(4))),
    ):
        began = time.perf_counter()
        finder = PathFinder(graph)
        prepared = time.perf_counter() - began
        print(f"# {name}: {len(graph)} states, {sum(1 for _ in graph.edges)} edges, prepared in {prepared:.2f} s")
        for goto in (True, False):
            rng = random.Random(7)
            row = measure(name, finder, list(graph.nodes), goto=goto, queries=arguments.queries, rng=rng)
            rows.append(row | {"prepare_s": round(prepared, 3)})
    if arguments.save:
        result = {
            **run_info(),
            "python": platform.python_version(),
            "load_average": round(os.getloadavg()[0], 1),
            "rows": rows,
        }
        write_result(RESULTS / "paths.json", result)


if __name__ == "__main__":
    main()
