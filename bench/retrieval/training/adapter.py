"""Train the adapters of the encoder `text`, for queries and for pages, on questions about invented applications.

    python -m bench.retrieval.training.adapter --out FOLDER [--pages] [--start FOLDER] [--epochs 3]
        [--validate NAME ...]

In two runs: first the adapter for queries alone, beside the original vectors of pages. Then, with `--pages` and
`--start` with the folder of the first run, both together: texts of pages are embedded in each step, which takes three
times as long. They are cut after `PAGE_TOKENS` tokens, their original vectors are not.

A page's score is MaxSim with the words of the question, as in a search, but further states of a page are not lowered.
The loss of a batch is

- the cross-entropy of the right page among all pages of its application (InfoNCE), scores divided by `--temperature`,
- `--stay` times the mean distance of vectors from those of the original model, for questions and for texts of pages.

Applications of `held_out/` are not trained on either. Their questions, five about each page, ask more often for what a
page is for than for what it shows.

`--start` also takes an adapter for pages, and `--epochs 0` only measures: the adapters in use by
`--pages --start pipeline/encode/text --epochs 0`.

Writes `OUT/query_adapter.safetensors` and `OUT/page_adapter.safetensors` after each epoch. The adapters in use are
copies of them in `pipeline/encode/text`. Pages with another adapter have another fingerprint.
"""

from __future__ import annotations

import argparse
import random
import statistics
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from bench.retrieval.embeddings import remembering_encoder
from bench.retrieval.training.adapted import AdaptedPages, AdaptedQueries, load_factors, save_factors
from bench.retrieval.training.applications import Application, read_applications
from bench.retrieval.training.train import rate_at
from waygraph.index.catalog.lexical import WORDS_WEIGHTS, LexicalIndex
from waygraph.pipeline.encode.text.composites import describe
from waygraph.pipeline.encode.text.encoder import NAMES_WEIGHT
from waygraph.pipeline.encode.text.sentence_model import SentenceModel
from waygraph.pipeline.encode.text.site_text import SiteText
from waygraph.pipeline.encode.text_counts import count_segments

APPLICATIONS = Path(__file__).with_name("invented")
#: Applications that are not trained on, with questions of other kinds.
HELD_OUT = Path(__file__).with_name("held_out")
#: Applications of a batch.
BATCH = 2
#: Applications that are not trained on: of each kind of site in the benchmark the one that is most alike.
VALIDATE = (
    "b-collaborative-knowledge-base",
    "b-website-editor",
    "c-bug-tracker",
    "c-code-hosting",
    "d-furniture-shop",
    "e-interface-component-gallery",
    "e-manual-of-a-programming-language",
    "f-automation-flow-builder",
    "f-scientific-computing-workspace",
)


@dataclass(frozen=True)
class Site:
    """An application as the search sees it.

    Attributes
    ----------
    name
        Name of the application.
    questions
        The questions.
    right
        Number of the page of each question.
    texts
        All texts that are embedded for its pages.
    parts
        For each row of its pages the numbers of three texts: its own, the page's context, the page's anchor text.
        Shape (rows, 3).
    page_of_row
        Number of each row's page.
    words
        What the words of each question add to each page, shape (questions, pages).
    question_vectors, text_vectors
        Vectors of questions and texts by the original model.
    """

    name: str
    questions: Sequence[str]
    right: Tensor
    texts: Sequence[str]
    parts: Tensor
    page_of_row: Tensor
    words: Tensor
    question_vectors: Tensor
    text_vectors: Tensor

    def scores(self, queries: Tensor, texts: Tensor) -> Tensor:
        """Return the scores of all pages, shape (questions, pages), for vectors of the questions and of the texts."""
        own, context, names = texts[self.parts].unbind(1)
        rows = own + context + float(NAMES_WEIGHT) * names
        best = torch.full(self.words.shape, -torch.inf)
        index = self.page_of_row.expand(len(queries), -1)
        return best.scatter_reduce(1, index, queries @ rows.T, "amax", include_self=False) + self.words


def site_of(application: Application, model: SentenceModel) -> Site:
    """Describe the pages of an application as the encoder does (`TextEncoder.encode_pages`), and embed their texts."""
    context = SiteText.from_counts(count_segments(application.pages))
    states = [describe(page, context) for page in application.pages]
    numbers: dict[str, int] = {}
    parts, page_of_row = [], []
    for page, state in enumerate(states):
        for row in state.rows:
            parts.append([numbers.setdefault(text, len(numbers)) for text in (row.text, state.context, state.names)])
            page_of_row.append(page)
    index = LexicalIndex(application.words())
    names = [page.node_id for page in application.pages]
    asked = [question for question, _ in application.questions]
    words = WORDS_WEIGHTS["text"] * np.stack([index.scores(question, names) for question in asked])
    return Site(
        application.name,
        asked,
        torch.tensor([page for _, page in application.questions]),
        list(numbers),
        torch.tensor(parts),
        torch.tensor(page_of_row),
        torch.from_numpy(words.astype(np.float32)),
        torch.from_numpy(model.embed(asked)),
        torch.from_numpy(model.embed(list(numbers))),
    )


@dataclass(frozen=True)
class Adapters:
    """The adapters that are trained; `pages` is None while pages keep their vectors."""

    queries: AdaptedQueries
    pages: AdaptedPages | None = None

    def embed(self, site: Site, *, dropout: float = 0.0) -> tuple[Tensor, Tensor]:
        """Return the vectors of the questions and of the texts of an application, with gradients."""
        queries = self.queries.embed(site.questions, dropout=dropout)
        if self.pages is None:
            return queries, site.text_vectors
        return queries, self.pages.embed(site.name, site.texts, dropout=dropout)

    def factors(self) -> list[Tensor]:
        """Return all that is trained."""
        return [*self.queries.factors.values(), *(self.pages.factors.values() if self.pages is not None else ())]

    def load(self, folder: Path) -> None:
        """Read the adapters of a folder; that for pages keeps its values if the folder has none."""
        load_factors(self.queries.factors, folder / "query_adapter.safetensors")
        of_pages = folder / "page_adapter.safetensors"
        if self.pages is not None and of_pages.exists():
            load_factors(self.pages.factors, of_pages)

    def save(self, folder: Path) -> None:
        """Write the adapters."""
        save_factors(self.queries.factors, folder / "query_adapter.safetensors")
        if self.pages is not None:
            save_factors(self.pages.factors, folder / "page_adapter.safetensors")


def quality(sites: Sequence[Site], vectors: Sequence[tuple[Tensor, Tensor]]) -> Mapping[str, float]:
    """Return how well the right pages are ranked, by vectors of the questions and of the texts of each site."""
    ranks: list[int] = []
    for site, (queries, texts) in zip(sites, vectors, strict=True):
        found = site.scores(queries, texts)
        ranks += ((found > found.gather(1, site.right[:, None])).sum(1) + 1).tolist()
    shares = {f"recall@{k}": statistics.fmean(rank <= k for rank in ranks) for k in (1, 5)}
    return {"queries": len(ranks), **shares, "mrr": statistics.fmean(1 / rank for rank in ranks)}


class Training:
    """Training of adapters.

    Parameters
    ----------
    adapters
        The adapters.
    sites
        Applications to train on.
    options
        Options of the command line.
    """

    def __init__(self, adapters: Adapters, sites: Sequence[Site], options: argparse.Namespace) -> None:
        self._adapters = adapters
        self._sites = sites
        self._options = options
        self._optimizer = torch.optim.AdamW(adapters.factors(), lr=options.rate, weight_decay=0.01)
        self._steps = options.epochs * -(-len(sites) // BATCH)
        self._step = 0

    def epoch(self, number: int) -> Mapping[str, float]:
        """Take a step for each batch of applications. Return the mean loss, and the mean distances of vectors."""
        order = random.Random(f"{self._options.seed} {number}").sample(self._sites, len(self._sites))
        steps = [self._train(order[start : start + BATCH]) for start in range(0, len(order), BATCH)]
        names = ("loss", "questions moved", "pages moved")
        return dict(zip(names, map(statistics.fmean, zip(*steps, strict=True)), strict=True))

    def _train(self, batch: Sequence[Site]) -> tuple[float, float, float]:
        for group in self._optimizer.param_groups:
            group["lr"] = self._options.rate * rate_at(self._step, self._steps)
        self._optimizer.zero_grad()
        found = []
        for site in batch:
            queries, texts = self._adapters.embed(site, dropout=self._options.dropout)
            loss = functional.cross_entropy(site.scores(queries, texts) / self._options.temperature, site.right)
            moved = _distance(queries, site.question_vectors), _distance(texts, site.text_vectors)
            torch.autograd.backward((loss + self._options.stay * sum(moved)) / len(batch))
            found.append((loss.item(), *(each.item() for each in moved)))
        torch.nn.utils.clip_grad_norm_(self._adapters.factors(), 1.0)
        self._optimizer.step()
        self._step += 1
        mean_loss, questions, pages = map(statistics.fmean, zip(*found, strict=True))
        return mean_loss, questions, pages


def _distance(vectors: Tensor, others: Tensor) -> Tensor:
    """Return the mean distance of unit vectors, 1 minus their cosine."""
    return 1 - (vectors * others).sum(1).mean()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--applications", type=Path, default=APPLICATIONS)
    parser.add_argument("--held-out", type=Path, default=HELD_OUT)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--pages", action="store_true", help="train an adapter for pages as well")
    parser.add_argument("--start", type=Path, help="folder with adapters to start from")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--rank", type=int, default=16)
    parser.add_argument("--rate", type=float, default=1e-3, help="largest learning rate")
    parser.add_argument("--stay", type=float, default=2.0)
    parser.add_argument("--temperature", type=float, default=0.1)
    parser.add_argument("--dropout", type=float, default=0.1)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--validate", nargs="*", default=VALIDATE, help="applications that are not trained on")
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    applications = read_applications(options.applications)
    if unknown := set(options.validate) - {application.name for application in applications}:
        parser.error(f"not in {options.applications}: {', '.join(sorted(unknown))}")
    torch.set_num_threads(options.threads)
    torch.manual_seed(options.seed)
    remembering = remembering_encoder("text", options.out)
    sites = [site_of(application, remembering.plain.model) for application in applications]
    held_out = [site_of(application, remembering.plain.model) for application in read_applications(options.held_out)]
    remembering.save()
    seen = [site for site in sites if site.name not in options.validate]
    unseen = {"like those": [site for site in sites if site.name in options.validate], "held out": held_out}
    unseen = {name: group for name, group in unseen.items() if group}
    for name, group in unseen.items():
        print(f"original, {name}", quality(group, [(s.question_vectors, s.text_vectors) for s in group]), flush=True)
    weights = remembering.plain.weights
    queries = AdaptedQueries(weights, options.rank, options.seed)
    pages = AdaptedPages(weights, options.rank, options.seed + 1) if options.pages else None
    adapters = Adapters(queries, pages)
    if options.start is not None:
        adapters.load(options.start)
    training = Training(adapters, seen, options)
    report("start", adapters, unseen)
    for number in range(1, options.epochs + 1):
        began = time.monotonic()
        print(f"epoch {number}", training.epoch(number), f"{time.monotonic() - began:.0f} s", flush=True)
        adapters.save(options.out)
        report(f"epoch {number}", adapters, unseen)


def report(when: str, adapters: Adapters, unseen: Mapping[str, Sequence[Site]]) -> None:
    """Print how well the right pages of applications are ranked that are not trained on, by group."""
    with torch.inference_mode():
        for name, group in unseen.items():
            print(f"{when}, {name}", quality(group, [adapters.embed(site) for site in group]), flush=True)


if __name__ == "__main__":
    main()
