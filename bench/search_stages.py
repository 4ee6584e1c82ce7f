"""Recall and time of two-stage search, codes and pooling: parts of `bench.search`."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from bench import synthetic
from bench.search_engines import K
from waygraph.index.graph import InteractionGraph, Node, node_id
from waygraph.index.store import EncoderInfo, MapDraft, Store
from waygraph.index.vectors import EdgeIndex, EncodedPage, ExactIndex, PackedIndex, VectorIndex
from waygraph.index.vectors.cross_site import count_values, pack_first_stage, search_across_maps
from waygraph.index.vectors.options import FIRST_STAGE_CANDIDATES, POOLED_ROWS, IndexOptions
from waygraph.index.vectors.packed import PackedRows
from waygraph.index.vectors.pooling import merge_neighbours, pool_windows

SITES, PER_SITE = 100, 200
QUESTIONS = 40

Pages = dict[str, np.ndarray]


class BenchMap:
    """One site as `search_across_maps` wants it; exact scoring goes another way here, for all questions at once."""

    def __init__(self, site: synthetic.SyntheticSite, index: VectorIndex | None = None) -> None:
        self.vectors: Pages = {f"{number:04}": page for number, page in enumerate(site.pages)}
        self.index = ExactIndex(synthetic.DIM) if index is None else index

    @cached_property
    def values(self) -> int:
        """How many numbers they are."""
        return count_values(self.vectors)

    @cached_property
    def first_stage(self) -> PackedRows:
        """Pooled rows."""
        return pack_first_stage(self.vectors)


def stages(kind: synthetic.Kind, target: float) -> list[dict[str, Any]]:
    """Two stages across 100 sites, with few and with many candidates."""
    sites = [synthetic.site(number, PER_SITE, kind) for number in range(SITES)]
    maps = {f"s{number:03}": BenchMap(site) for number, site in enumerate(sites)}
    asked = [query for *_, query in synthetic.questions(sites, QUESTIONS, 20)]
    truth = _exact_across(maps, asked)
    began = time.perf_counter()
    for each in maps.values():
        assert each.first_stage.ids
    prepared = time.perf_counter() - began
    rows = []
    for candidates in (32, 64, 128, FIRST_STAGE_CANDIDATES, 512):
        taken, right = [], []
        for query, best in zip([asked[0], *asked], [truth[0], *truth], strict=True):
            before = time.perf_counter()
            hits = search_across_maps(maps, query, K, candidates=candidates, exact_up_to=0)
            taken.append((time.perf_counter() - before) * 1_000)
            right.append(len({(site, hit.node_id) for site, hit in hits} & best) / K)
        rows.append(
            {
                "states": SITES * PER_SITE,
                "kind": kind,
                "first stage": f"windows, {POOLED_ROWS} rows",
                "candidates": candidates,
                "recall_at_10": round(float(np.mean(right[1:])), 4),
                "target_recall": target,
                "p50_ms": round(float(np.median(taken[1:])), 1),
                "worst_ms": round(max(taken[1:]), 1),
                "target_ms": 50,
                "prepare_s": round(prepared, 1),
            }
        )
    return rows


def switch() -> list[dict[str, Any]]:
    """From how many values on two stages are faster than asking every site's engine for its exact best."""
    sites = [synthetic.site(number, 100, "pages") for number in range(16)]
    asked = [query for *_, query in synthetic.questions(sites[:1], 15, 20)]
    maps: dict[str, BenchMap] = {}
    rows = []
    for number, site in enumerate(sites, start=1):
        maps[f"s{number:03}"] = BenchMap(site, EdgeIndex(synthetic.DIM))
        maps[f"s{number:03}"].index.add(maps[f"s{number:03}"].vectors.items())
        if number not in {1, 2, 3, 4, 6, 8, 12, 16}:
            continue
        values = sum(each.values for each in maps.values())
        exact, staged = (
            _median_ms(partial(search_across_maps, maps, k=K, exact_up_to=up_to), [asked[0], *asked])
            for up_to in (values, 0)
        )
        rows.append(
            {
                "sites": number,
                "states": number * 100,
                "values": values,
                "exact_p50_ms": exact,
                "two_stages_p50_ms": staged,
            }
        )
    for each in maps.values():
        each.index.close()
    return rows


def _exact_across(maps: dict[str, BenchMap], asked: list[np.ndarray]) -> list[set[tuple[str, str]]]:
    """Return the K best states of each question, scored from all rows in float32; one product per site."""
    together = torch.from_numpy(np.concatenate(asked)).t().contiguous()
    rows_each = len(asked[0])
    names, scores = [], []
    for site, each in maps.items():
        names += [(site, name) for name in each.vectors]
        for start in range(0, len(each.vectors), 50):
            pages = torch.from_numpy(np.stack(list(each.vectors.values())[start : start + 50])).float()
            best = (pages.flatten(0, 1) @ together).view(len(pages), pages.shape[1], -1).amax(1)
            scores.append(best.view(len(pages), len(asked), rows_each).mean(2))
    everything = torch.cat(scores).t()
    return [{names[i] for i in torch.topk(line, K).indices.tolist()} for line in everything]


def sizes() -> list[dict[str, Any]]:
    """Bytes on the disk after filling and compacting, and recall@10 against exact scoring of the originals."""
    rows = []
    for kind in ("pages", "near-duplicates"):
        sites = [synthetic.site(number, 150, kind) for number in range(2)]
        known = {f"{s}/{n:03}": page for s, site in enumerate(sites) for n, page in enumerate(site.pages)}
        asked = [query for *_, query in synthetic.questions(sites, 30, 20)]
        exact = PackedIndex(synthetic.DIM)
        exact.add(known.items())
        truth = [{hit.node_id for hit in exact.search(query, K)} for query in asked]
        third = synthetic.ROWS // 3
        merged = {name: merge_neighbours(page, third) for name, page in known.items()}
        runs = {name: pool_windows(page, third) for name, page in known.items()}
        for name, given, options, target in (
            ("f16", known, IndexOptions(), 1.2 * synthetic.ROWS * synthetic.DIM * 2),
            ("int8", known, IndexOptions(storage="int8"), 100_000),
            ("int4", known, IndexOptions(storage="int4"), None),
            ("f16 + scalar codes, rescored", known, IndexOptions(quantization="scalar", first_stage="codes"), None),
            ("f16 + binary codes, rescored", known, IndexOptions(quantization="binary", first_stage="codes"), None),
            ("f16 + turbo codes, rescored", known, IndexOptions(quantization="turbo", first_stage="codes"), None),
            ("f16 + pooled rows, rescored", known, IndexOptions(first_stage="pooled"), None),
            ("int8, pooled by 3 (runs)", runs, IndexOptions(storage="int8"), 35_000),
            ("int8, pooled by 3 (neighbours)", merged, IndexOptions(storage="int8"), 35_000),
        ):
            rows.append({"kind": kind, "kept as": name} | _kept(given, options, asked, truth, target))
        rows.append(_published(kind, known))
    return rows


def _kept(
    given: Pages, options: IndexOptions, asked: list[np.ndarray], truth: list[set[str]], target: float | None
) -> dict[str, Any]:
    index = EdgeIndex(synthetic.DIM, options=options)
    index.add(given.items())
    index.compact()
    found = [{hit.node_id for hit in index.search(query, K)} for query in asked]
    first = [index.search(query, 1)[0].node_id in best for query, best in zip(asked, truth, strict=True)]
    taken = _median_ms(lambda query: index.search(query, K), asked)
    size = index.disk_bytes() / len(given)
    index.close()
    right = np.mean([len(one & best) / K for one, best in zip(found, truth, strict=True)])
    return {
        "bytes_per_state": round(size), "target_bytes": None if target is None else round(target),
        "recall_at_10": round(float(right), 4), "top1_in_top10": round(float(np.mean(first)), 3), "p50_ms": taken,
    }  # fmt: skip


def _published(kind: str, known: Pages) -> dict[str, Any]:
    """Return the size of the file in the store that a shard is filled from, for the same states."""
    nodes = [Node(node_id((), f"http://x/{n}"), f"http://x/{n}", n, (), 0, addressable=True) for n in known]
    rows = ("",) * synthetic.ROWS
    pages = {
        node.id: EncodedPage(page.astype(np.float32), rows, ((),) * len(rows))
        for node, page in zip(nodes, known.values(), strict=True)
    }
    with tempfile.TemporaryDirectory() as folder:
        store = Store.open(folder, create=True)
        store.publish(
            MapDraft("x", "http://x/", InteractionGraph(nodes, ()), {}, pages, EncoderInfo("bench", synthetic.DIM, "b"))
        )
        size = sum(path.stat().st_blocks * 512 for path in Path(folder).rglob("vectors.parquet"))
    return {"kind": kind, "kept as": "published version (vectors.parquet)", "bytes_per_state": round(size / len(known)),
            "target_bytes": round(1.2 * synthetic.ROWS * synthetic.DIM * 2), "recall_at_10": 1.0}  # fmt: skip


def _median_ms(search: Callable[[np.ndarray], object], asked: list[np.ndarray]) -> float:
    taken = []
    for query in asked:
        before = time.perf_counter()
        search(query)
        taken.append((time.perf_counter() - before) * 1_000)
    return round(float(np.median(taken)), 1)
