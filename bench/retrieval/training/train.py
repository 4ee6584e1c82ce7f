"""Fine-tune a sentence model on pairs, towards the rankings of a larger one.

    python -m bench.retrieval.training.train PAIRS --teacher FOLDER --out FOLDER [--minutes 8] [--steps N]
        [--validate NAME ...]

PAIRS is what `bench.retrieval.training.pairs` wrote, `--teacher` a larger sentence model. A run ends after
`--minutes`; the same command goes on where it ended, and writes `OUT/weights` when all steps are done: a
folder for WAYGRAPH_ENCODE__WEIGHTS.

A page scores `q . context + max_j q . row_j` for a query `q`, as in the encoder `text`. The loss of a batch is

- the divergence of the model's ranking of the batch's pages from the teacher's,
- `INFONCE` times the cross-entropy of the right page,
- `STAY` times the distance of each vector from that of the original model.

Word embeddings stay as they are. One thread: see `--threads` when the machine does nothing else.
"""

from __future__ import annotations

import argparse
import dataclasses
import math
import shutil
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import save_file
from tokenizers import Tokenizer
from torch import Tensor
from torch.nn import functional

from bench.retrieval.embeddings import RememberedModel
from bench.retrieval.training.adapted import plain_bert
from bench.retrieval.training.batches import Batch, plan, read_pairs
from waygraph.pipeline.encode.text.sentence_model import SentenceModel
from waygraph.pipeline.encode.text.weights import FILES, TextWeights, find_weights

PAGES, ROWS, BATCHES_PER_PACKAGE = 24, 2, 8
MAX_TOKENS = 64
TEMPERATURE = 0.05
INFONCE = 0.3
STAY = 1.0
LEARNING_RATE = 3e-5
WARM_UP = 0.1
#: Texts that the teacher embeds before the time is looked at again.
_PART = 256

#: Unit vectors of texts, of shape (texts, dim).
Embed = Callable[[Sequence[str]], Tensor]


def scores(queries: Tensor, contexts: Tensor, rows: Tensor, page_of_row: Tensor) -> Tensor:
    """Return the score of every page for every query, halved: of shape (queries, pages).

    Parameters
    ----------
    queries
        Of shape (queries, dim).
    contexts
        Of shape (pages, dim).
    rows
        Of shape (rows, dim). A page without rows is scored by its context twice.
    page_of_row
        Number of each row's page.
    """
    of_context = queries @ contexts.T
    best = torch.full_like(of_context, -math.inf)
    of_rows = queries @ rows.T
    best = best.scatter_reduce(1, page_of_row.expand(len(queries), -1), of_rows, "amax", include_self=False)
    return (of_context + torch.where(best == -math.inf, of_context, best)) / 2


def scored(batch: Batch, vectors: Tensor) -> Tensor:
    """Return the scores of a batch's pages for its queries, from the vectors of `texts_of([batch])`."""
    number = {text: at for at, text in enumerate(texts_of([batch]))}
    rows = [(number[row], page) for page, each in enumerate(batch.pages) for row in each.rows]
    return scores(
        vectors[[number[query.text] for query in batch.queries]],
        vectors[[number[page.context] for page in batch.pages]],
        vectors[[row for row, _ in rows]],
        torch.tensor([page for _, page in rows], dtype=torch.long),
    )


def texts_of(batches: Sequence[Batch]) -> list[str]:
    """Return the distinct texts of batches."""
    texts: dict[str, None] = {}
    for batch in batches:
        texts |= dict.fromkeys(query.text for query in batch.queries)
        texts |= dict.fromkeys(text for page in batch.pages for text in (page.context, *page.rows))
    return list(texts)


def loss_of(student: Tensor, teacher: Tensor, right: Tensor) -> Tensor:
    """Return the divergence from the teacher's ranking and the weighted cross-entropy of the right page."""
    ours = functional.log_softmax(student / TEMPERATURE, 1)
    theirs = functional.log_softmax(teacher / TEMPERATURE, 1)
    divergence = functional.kl_div(ours, theirs, log_target=True, reduction="batchmean")
    return divergence + INFONCE * functional.nll_loss(ours, right)


class Student:
    """The trained model: unit vectors of texts, with gradients.

    Parameters
    ----------
    weights
        Folder of the original model.
    """

    def __init__(self, weights: TextWeights) -> None:
        self._model = plain_bert(weights)
        self.tensors = dict(self._model.named_parameters())
        self.trained = [t.requires_grad_() for name, t in self.tensors.items() if "word_embeddings" not in name]
        self._tokenizer = Tokenizer.from_file(str(weights.folder / "tokenizer.json"))
        self._tokenizer.enable_truncation(MAX_TOKENS)
        self._tokenizer.no_padding()

    def embed(self, texts: Sequence[str]) -> Tensor:
        """Embed texts, those of similar length together."""
        encoded = [encoding.ids for encoding in self._tokenizer.encode_batch(list(texts))]
        order = sorted(range(len(texts)), key=lambda at: len(encoded[at]))
        parts = [order[start : start + 24] for start in range(0, len(order), 24)]
        vectors = torch.cat([self._pooled([encoded[at] for at in part]) for part in parts])
        return vectors[torch.tensor(order).argsort()]

    def _pooled(self, encoded: Sequence[Sequence[int]]) -> Tensor:
        ids = torch.nn.utils.rnn.pad_sequence([torch.tensor(each) for each in encoded], batch_first=True)
        lengths = torch.tensor([[len(each)] for each in encoded])
        mask = (torch.arange(ids.shape[1]) < lengths).long()
        with torch.autocast("cpu", dtype=torch.bfloat16):
            hidden = self._model(ids, attention_mask=mask).last_hidden_state
        summed = (hidden.float() * mask.unsqueeze(-1)).sum(1)
        return functional.normalize(summed / lengths, dim=1)

    def write(self, folder: Path, original: Path) -> None:
        """Write a folder of weights: the original's files with the trained tensors."""
        folder.mkdir(parents=True, exist_ok=True)
        for name in FILES:
            if name != "model.safetensors":
                shutil.copyfile(original / name, folder / name)
        save_file(
            {name: tensor.detach().contiguous() for name, tensor in self.tensors.items()}, folder / "model.safetensors"
        )


def remembered(weights: TextWeights, file: Path) -> RememberedModel:
    """Return a model for fixed vectors of short texts, kept in `file`."""
    short = dataclasses.replace(weights, recipe=dataclasses.replace(weights.recipe, max_tokens=MAX_TOKENS))
    return RememberedModel(SentenceModel.load(short, batch_size=32, threads=0), file)


def embed_all(model: RememberedModel, texts: Sequence[str], until: float) -> bool:
    """Embed texts into the model's file. Return whether all are done before `until`."""
    for start in range(0, len(texts), _PART):
        if time.monotonic() > until:
            model.save()
            return False
        model.embed(texts[start : start + _PART])
    model.save()
    return True


def fixed(model: RememberedModel) -> Embed:
    """Return the model's vectors as tensors."""
    return lambda texts: torch.from_numpy(np.ascontiguousarray(model.embed(texts)))


def validation(batches: Sequence[Batch], embed: Embed) -> Mapping[str, float]:
    """Return how well the right page is ranked within its batch."""
    ranks: list[int] = []
    for batch in batches:
        with torch.no_grad():
            found = scored(batch, embed(texts_of([batch])))
        right = found[torch.arange(len(batch.queries)), [query.page for query in batch.queries]]
        ranks += ((found > right[:, None]).sum(1) + 1).tolist()
    return {
        "queries": len(ranks),
        "recall@1": statistics.fmean(rank == 1 for rank in ranks),
        "mrr": statistics.fmean(1 / rank for rank in ranks),
    }


def rate_at(step: int, steps: int) -> float:
    """Return the share of the learning rate: a linear rise, then a linear fall."""
    return min((step + 1) / (WARM_UP * steps), (steps - step) / ((1 - WARM_UP) * steps))


def train(
    student: Student, original: Embed, teacher: Embed, batches: Sequence[Batch], *, state: Path, until: float
) -> bool:
    """Train from where `state` ends until all batches are done, or until `until`. Return whether all are done."""
    optimizer = torch.optim.AdamW(student.trained, lr=LEARNING_RATE, weight_decay=0.01)
    step = 0
    if state.exists():
        kept = torch.load(state, weights_only=True)
        step = kept["step"]
        optimizer.load_state_dict(kept["optimizer"])
        with torch.no_grad():
            for tensor, before in zip(student.trained, kept["tensors"], strict=True):
                tensor.copy_(before)
    while step < len(batches) and time.monotonic() < until:
        batch = batches[step]
        for group in optimizer.param_groups:
            group["lr"] = LEARNING_RATE * rate_at(step, len(batches))
        texts = texts_of([batch])
        vectors = student.embed(texts)
        right = torch.tensor([query.page for query in batch.queries])
        loss = loss_of(scored(batch, vectors), scored(batch, teacher(texts)), right)
        moved = 1 - (vectors * original(texts)).sum(1).mean()
        optimizer.zero_grad()
        torch.autograd.backward(loss + STAY * moved)
        torch.nn.utils.clip_grad_norm_(student.trained, 1.0)
        optimizer.step()
        step += 1
        if step % 20 == 0:
            print(f"step {step} of {len(batches)}: loss {loss.item():.3f}, moved {moved.item():.4f}", flush=True)
    torch.save(
        {"step": step, "optimizer": optimizer.state_dict(), "tensors": [t.detach() for t in student.trained]},
        state.with_suffix(".new"),
    )
    state.with_suffix(".new").replace(state)
    return step == len(batches)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pairs", type=Path)
    parser.add_argument("--teacher", type=Path, required=True, help="folder of a larger sentence model")
    parser.add_argument("--out", type=Path, required=True, help="state, vectors of the teacher, and the weights")
    parser.add_argument("--minutes", type=float, default=8, help="when this run ends")
    parser.add_argument("--steps", type=int, default=200, help="batches of an epoch")
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--validate", nargs="*", default=[], help="packages that are not trained on")
    parser.add_argument("--threads", type=int, default=1)
    arguments = parser.parse_args()
    until = time.monotonic() + 60 * arguments.minutes
    torch.set_num_threads(arguments.threads)
    arguments.out.mkdir(parents=True, exist_ok=True)

    packages = read_pairs(arguments.pairs)
    seen = [package for package in packages if package.name not in arguments.validate]
    batches = plan(seen, PAGES, ROWS, BATCHES_PER_PACKAGE, seed=1)[: arguments.steps]
    unseen = plan([p for p in packages if p.name in arguments.validate], PAGES, ROWS, 4, seed=2)
    weights = find_weights()
    student = Student(weights)
    original = remembered(weights, arguments.out / "original.npz")
    teacher = remembered(find_weights(arguments.teacher), arguments.out / "teacher.npz")
    texts = texts_of([*unseen, *batches])
    print(f"{len(batches)} batches, {sum(len(b.queries) for b in batches)} queries, {len(texts)} texts", flush=True)
    if not (embed_all(original, texts, until) and embed_all(teacher, texts, until)):
        print("The teacher's vectors are not complete: run the command again.")
        return
    done = train(
        student,
        fixed(original),
        fixed(teacher),
        batches * arguments.epochs,
        state=arguments.out / "state.pt",
        until=until,
    )
    for name, embed in (("original", fixed(original)), ("teacher", fixed(teacher)), ("trained", student.embed)):
        print(name, validation(unseen, embed), flush=True)
    if done:
        student.write(arguments.out / "weights", weights.folder)
    print("done" if done else "run the command again")


if __name__ == "__main__":
    main()
