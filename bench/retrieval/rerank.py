"""Benchmark of reranking: what a cross-encoder makes of the first 30 hits of `text`, and what it costs.

    python -m bench.retrieval.rerank --store FOLDER --reranker FOLDER [--split dev|test] [--only SITE ...]
        [--threads N]

Without --reranker the model has the shape of ms-marco-MiniLM-L6 and random parameters: it takes the time of a real one,
and its ranking means nothing, so only the time is printed. Each state is read by its title and the four texts that
match best, as searches do (`serve/query/reranker.py`).
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from transformers import BertConfig, BertForSequenceClassification

from bench.retrieval.__main__ import compare, measure, summary
from bench.retrieval.embeddings import remembering_encoder
from bench.retrieval.maps import names
from bench.retrieval.metrics import Scores
from bench.retrieval.systems import Corpus, Matrix, System, encoded, maxsim, read_corpus, served
from waygraph.core.settings import ServeSettings
from waygraph.index.vectors.multivector import EncodedPage
from waygraph.pipeline.encode.protocol import Encoder
from waygraph.pipeline.encode.text.anchor_text import with_anchor_texts
from waygraph.pipeline.encode.text.cross_encoder import CrossEncoder
from waygraph.pipeline.encode.text.weights import find_weights
from waygraph.pipeline.encode.text_counts import count_segments
from waygraph.serve.query.reranker import CHARS, TEXTS

HITS = ServeSettings().rerank_hits


def random_model(folder: Path) -> Path:
    """Write a cross-encoder of the shape of ms-marco-MiniLM-L6 with random parameters."""
    weights = find_weights().folder
    for name in ("tokenizer.json", "tokenizer_config.json"):
        if (weights / name).exists():
            shutil.copy(weights / name, folder / name)
    config = BertConfig(
        vocab_size=30_522,
        hidden_size=384,
        num_hidden_layers=6,
        num_attention_heads=12,
        intermediate_size=1536,
    )
    config.num_labels = 1
    BertForSequenceClassification(config).save_pretrained(folder)
    return folder


class Reranked:
    """The encoder with words, its first hits ordered by a cross-encoder.

    Parameters
    ----------
    encoder
        Finds the hits.
    model
        Orders them.

    Attributes
    ----------
    seconds
        Time of the cross-encoder for each question.
    cpu_seconds
        CPU time of the cross-encoder for all questions, which a busy machine changes little.
    """

    def __init__(self, encoder: Encoder, model: CrossEncoder) -> None:
        self._encoder = encoder
        self._model = model
        self.seconds: list[float] = []
        self.cpu_seconds = 0.0

    def system(self, corpus: Corpus, asks: Sequence[str]) -> Scores:
        """Return scores by which the first hits stand in the new order before all others."""
        seen = with_anchor_texts(corpus.graph, corpus.observations)
        pages = self._encoder.encode_pages(seen, self._encoder.prepare_site(count_segments(seen)))
        queries = self._encoder.encode_queries(asks)
        vectors: System = lambda _corpus, _asks: maxsim(queries, [page.vectors for page in pages])  # noqa: E731
        scores = served(vectors)(corpus, asks)
        for ask, query, row in zip(asks, queries, scores, strict=True):
            first = np.argsort(-row, kind="stable")[:HITS]
            texts = [_text(corpus.observations[index].title, pages[index], query) for index in first]
            started, cpu = time.perf_counter(), time.process_time()
            order = np.argsort(-self._model.scores(ask, texts), kind="stable")
            self.seconds.append(time.perf_counter() - started)
            self.cpu_seconds += time.process_time() - cpu
            row[first[order]] = row.max() + np.arange(len(first), 0, -1)
        return scores


def _text(title: str, page: EncodedPage, query: Matrix) -> str:
    """Return what searches read of a state, see `state_text` and `OpenMap.best_texts`."""
    best = np.argsort(-(page.vectors @ query.T).max(1), kind="stable")[:TEXTS]
    texts = dict.fromkeys([title, *(page.rows[row] for row in best)])
    return ". ".join(text.removesuffix(".") for text in texts if text)[:CHARS]


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--store", type=Path, default=Path("retrieval-maps"))
    parser.add_argument("--reranker", help="folder or repository of a cross-encoder")
    parser.add_argument("--split", choices=("dev", "test"), default="dev")
    parser.add_argument("--only", nargs="*", metavar="SITE", help="these sites of the split alone")
    parser.add_argument("--threads", type=int, default=1, help="threads of the cross-encoder; services use one")
    options = parser.parse_args()

    sites = [name for name in names(options.split) if name in (options.only or names(options.split))]
    corpora = [read_corpus(name, options.store) for name in sites]
    remembering = remembering_encoder("text", options.store)
    text = remembering.text
    with tempfile.TemporaryDirectory() as scratch:
        model = CrossEncoder.load(options.reranker or str(random_model(Path(scratch))))
    before = measure(served(encoded(text)), corpora)["ranks"]
    remembering.save()
    torch.set_num_threads(options.threads)
    reranked = Reranked(text, model)
    after = measure(reranked.system, corpora)["ranks"]
    times = sorted(1000 * seconds for seconds in reranked.seconds)
    print(f"{len(times)} questions, {HITS} hits each, {options.threads} threads: ", end="")
    print(f"median {statistics.median(times):.0f} ms, 95% below {times[int(0.95 * len(times))]:.0f} ms", end="")
    print(f", CPU time {1000 * reranked.cpu_seconds / len(times):.0f} ms a question")
    if options.reranker:
        print(f"text: {summary(before)}\nreranked: {summary(after)}\nreranked - text: {compare(after, before)}")


if __name__ == "__main__":
    main()
