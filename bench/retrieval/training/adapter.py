"""Train the adapter for queries of the encoder `text`, on questions about invented applications.

    python -m bench.retrieval.training.adapter --out FOLDER [--applications FOLDER] [--epochs 3] [--validate NAME ...]

Pages keep their vectors: the adapter changes the vectors of queries alone, so maps stay as they are, and training
embeds nothing but questions. It is low-rank (LoRA, Hu et al. 2021, eq. 3): for each linear map W of attention and
feed-forward layers it holds A and B, and queries are embedded with `W + B A`.

A page's score is MaxSim with the words of the question, as in a search, but further states of a page are not lowered.
The loss of a batch is

- the cross-entropy of the right page among all pages of its application (InfoNCE), scores divided by `--temperature`,
- `--stay` times the distance of each question's vector from that of the original model.

Writes `OUT/adapter.safetensors` after each epoch. The adapter in use is a copy of it,
`pipeline/encode/text/query_adapter.safetensors`.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer
from torch import Tensor
from torch.nn import functional

from bench.retrieval.embeddings import remembering_encoder
from bench.retrieval.training.applications import Application, read_applications
from bench.retrieval.training.train import rate_at
from waygraph.index.catalog.lexical import WORDS_WEIGHTS, LexicalIndex
from waygraph.pipeline.encode.text.bert import Bert
from waygraph.pipeline.encode.text.encoder import TextEncoder
from waygraph.pipeline.encode.text.weights import TextWeights
from waygraph.pipeline.encode.text_counts import count_segments

APPLICATIONS = Path(__file__).with_name("invented")
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
    rows
        Rows of all pages, shape (rows, dim).
    page_of_row
        Number of each row's page.
    words
        What the words of each question add to each page, shape (questions, pages).
    """

    name: str
    questions: Sequence[str]
    right: Tensor
    rows: Tensor
    page_of_row: Tensor
    words: Tensor

    def scores(self, queries: Tensor) -> Tensor:
        """Return the scores of all pages, shape (questions, pages), for vectors of the questions."""
        best = torch.full(self.words.shape, -torch.inf)
        index = self.page_of_row.expand(len(queries), -1)
        return best.scatter_reduce(1, index, queries @ self.rows.T, "amax", include_self=False) + self.words


def site_of(application: Application, text: TextEncoder) -> Site:
    """Encode the pages of an application as `waygraph index` does."""
    pages = text.encode_pages(application.pages, text.prepare_site(count_segments(application.pages)))
    index = LexicalIndex(application.words())
    names = [page.node_id for page in application.pages]
    asked = [question for question, _ in application.questions]
    words = WORDS_WEIGHTS["text"] * np.stack([index.scores(question, names) for question in asked])
    numbers = np.repeat(np.arange(len(pages)), [len(page.vectors) for page in pages])
    return Site(
        application.name,
        asked,
        torch.tensor([page for _, page in application.questions]),
        torch.from_numpy(np.concatenate([page.vectors for page in pages])),
        torch.from_numpy(numbers),
        torch.from_numpy(words.astype(np.float32)),
    )


class Adapted:
    """The sentence model with a trainable adapter: unit vectors of questions, with gradients.

    Parameters
    ----------
    weights
        The original model.
    rank
        Rank of the adapter.
    seed
        Start of the random numbers of A. B is zero, so an untrained adapter changes nothing.
    """

    def __init__(self, weights: TextWeights, rank: int, seed: int) -> None:
        tensors = load_file(weights.folder / "model.safetensors")
        self._config = json.loads((weights.folder / "config.json").read_text())
        self._tensors = {n: t for n, t in tensors.items() if n.startswith(("embeddings", "encoder"))}
        generator = torch.Generator().manual_seed(seed)
        self.factors: dict[str, Tensor] = {}
        for name, tensor in self._tensors.items():
            if name.startswith("encoder") and tensor.ndim == 2:
                rows, columns = tensor.shape
                self.factors[f"{name}.a"] = torch.randn(rank, columns, generator=generator) / columns**0.5
                self.factors[f"{name}.b"] = torch.zeros(rows, rank)
        for factor in self.factors.values():
            factor.requires_grad_()
        self._tokenizer = Tokenizer.from_file(str(weights.folder / "tokenizer.json"))
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(weights.recipe.max_tokens)

    def embed(self, questions: Sequence[str], *, dropout: float = 0.0) -> Tensor:
        """Return unit vectors. `dropout` is the share of the factors' inner components that is left out at random."""
        kept = {
            name: functional.dropout(torch.ones(len(factor), 1), dropout) * factor if name.endswith(".a") else factor
            for name, factor in self.factors.items()
        }
        forward = Bert(self._tensors, self._config).with_adapter(kept)
        ids = [encoding.ids for encoding in self._tokenizer.encode_batch(list(questions))]
        padded = torch.nn.utils.rnn.pad_sequence([torch.tensor(each) for each in ids], batch_first=True)
        lengths = torch.tensor([[len(each)] for each in ids])
        mask = (torch.arange(padded.shape[1]) < lengths).long()
        summed = (forward(padded, mask) * mask.unsqueeze(-1)).sum(1)
        return functional.normalize(summed / lengths, dim=1)


def quality(sites: Sequence[Site], vectors: Sequence[Tensor]) -> Mapping[str, float]:
    """Return how well the right pages are ranked."""
    ranks: list[int] = []
    for site, queries in zip(sites, vectors, strict=True):
        found = site.scores(queries)
        ranks += ((found > found.gather(1, site.right[:, None])).sum(1) + 1).tolist()
    shares = {f"recall@{k}": statistics.fmean(rank <= k for rank in ranks) for k in (1, 5)}
    return {"queries": len(ranks), **shares, "mrr": statistics.fmean(1 / rank for rank in ranks)}


class Training:
    """Training of an adapter.

    Parameters
    ----------
    adapted
        The model.
    sites
        Applications to train on.
    originals
        Vectors of the questions by the original model, by name of the application.
    options
        Options of the command line.
    """

    def __init__(
        self, adapted: Adapted, sites: Sequence[Site], originals: Mapping[str, Tensor], options: argparse.Namespace
    ) -> None:
        self._adapted = adapted
        self._sites = sites
        self._originals = originals
        self._options = options
        self._optimizer = torch.optim.AdamW(adapted.factors.values(), lr=options.rate, weight_decay=0.01)
        self._steps = options.epochs * -(-len(sites) // BATCH)
        self._step = 0

    def epoch(self, number: int) -> Mapping[str, float]:
        """Take a step for each batch of applications. Return the mean loss, and the mean distance of questions."""
        order = random.Random(f"{self._options.seed} {number}").sample(self._sites, len(self._sites))
        steps = [self._train(order[start : start + BATCH]) for start in range(0, len(order), BATCH)]
        return {
            "loss": statistics.fmean(loss for loss, _ in steps),
            "moved": statistics.fmean(moved for _, moved in steps),
        }

    def _train(self, batch: Sequence[Site]) -> tuple[float, float]:
        for group in self._optimizer.param_groups:
            group["lr"] = self._options.rate * rate_at(self._step, self._steps)
        questions = [question for site in batch for question in site.questions]
        vectors = self._adapted.embed(questions, dropout=self._options.dropout)
        parts = torch.split(vectors, [len(site.questions) for site in batch])
        losses = [
            functional.cross_entropy(site.scores(part) / self._options.temperature, site.right)
            for site, part in zip(batch, parts, strict=True)
        ]
        loss = torch.stack(losses).mean()
        moved = 1 - (vectors * torch.cat([self._originals[site.name] for site in batch])).sum(1).mean()
        self._optimizer.zero_grad()
        torch.autograd.backward(loss + self._options.stay * moved)
        torch.nn.utils.clip_grad_norm_(list(self._adapted.factors.values()), 1.0)
        self._optimizer.step()
        self._step += 1
        return loss.item(), moved.item()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--applications", type=Path, default=APPLICATIONS)
    parser.add_argument("--out", type=Path, required=True)
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
    text, model = remembering_encoder("text", options.out, "float32")
    sites = []
    for application in applications:
        sites.append(site_of(application, text))
        model.save()
    originals = {site.name: torch.from_numpy(model.embed(site.questions)) for site in sites}
    model.save()
    unseen = [site for site in sites if site.name in options.validate]
    seen = [site for site in sites if site.name not in options.validate]
    if unseen:
        print("original, unseen", quality(unseen, [originals[site.name] for site in unseen]), flush=True)
    adapted = Adapted(text.weights, options.rank, options.seed)
    training = Training(adapted, seen, originals, options)
    for number in range(1, options.epochs + 1):
        began = time.monotonic()
        print(f"epoch {number}", training.epoch(number), f"{time.monotonic() - began:.0f} s", flush=True)
        save_file(
            {name: factor.detach().half().contiguous() for name, factor in adapted.factors.items()},
            options.out / "adapter.safetensors",
        )
        if unseen:
            with torch.inference_mode():
                print("  unseen", quality(unseen, [adapted.embed(site.questions) for site in unseen]), flush=True)


if __name__ == "__main__":
    main()
