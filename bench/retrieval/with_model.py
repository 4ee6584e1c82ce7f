"""Benchmark of the steps of retrieval that a language model takes: descriptions of pages, and the choice among hits.

    python -m bench.retrieval.with_model requests --store FOLDER --out FOLDER [--split dev|test] [--only SITE ...]
        [--described] [--model NAME]
    python -m bench.retrieval.with_model measure --store FOLDER [--split dev|test] [--only SITE ...] [--pages]
        [--per kind] [--save]
    python -m bench.retrieval.with_model questions --store FOLDER [--split dev|test] [--only SITE ...] [--pages]

`requests` writes what the model is asked, as files for a batch service: `describe-SITE.jsonl`, the requests of
`waygraph describe` about each state (`describe-kinds-SITE.jsonl`: about kinds of pages), and `choose-SITE.jsonl`, those
of `select=llm` about the first 30 states of each question (with `--described` of the described map, which needs its
replies). `measure` takes the replies from `replies/`, under the same names, and compares search without a model, with
descriptions, with the choice, and with both. A request is known by the hash of its texts: on other maps, or with other
candidates, a reply counts as missing, and is reported.
`--save` writes bench/results/with-model-SPLIT.json, with `--pages`, `--per kind` and `--only` files of their own.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from bench.result_files import RESULTS, run_info, write_result
from bench.retrieval.__main__ import Ranks, by_style, compare, summary
from bench.retrieval.embeddings import identity, remembering_encoder
from bench.retrieval.maps import names, open_map
from bench.retrieval.metrics import area_under_curve, ranks_of
from bench.retrieval.queries import FOLDER, PAGES, Question
from bench.retrieval.reasoning import FALSE_FLAGS, Run, best_scores, confidence_levels, flags, runs, top1
from bench.retrieval.systems import encoded_pages, read_corpus
from waygraph.agents.describe.plan import Per, Subject, plan_descriptions
from waygraph.agents.describe.prompt import PageReply
from waygraph.agents.describe.run import Asked, take_replies
from waygraph.agents.models.batch_file import batch_lines, read_replies
from waygraph.agents.models.budget import ModelBudget
from waygraph.agents.models.chat import ChatMessage, ChatReply, ChatRequest
from waygraph.agents.models.structured import parse_reply, request_for
from waygraph.agents.webnavigator.page_selector import PageChoice
from waygraph.core.schemas import Hit, MatchModel
from waygraph.core.settings import ChatSettings, LlmSettings
from waygraph.index.store import MapVersion
from waygraph.pipeline.encode.text.encoder import TextEncoder
from waygraph.serve.select import RetrievedState, SelectionQuery
from waygraph.serve.select.candidate_prompt import INSTRUCTIONS, CandidateView, candidate_parts
from waygraph.serve.select.confidence import DESCRIBED_TEXT_LEVELS, confidence
from waygraph.serve.select.no_match import DESCRIBED_TEXT_THRESHOLD, nothing_matches
from waygraph.serve.select.shortlist import is_sure, shortlists

REPLIES = Path(__file__).parent / "replies"
CANDIDATES = LlmSettings().candidates
#: Bands of cosines (MiniLM without adapters) between a question and the nearest generated text.
CLOSENESS = ((0.9, 1.01), (0.8, 0.9), (0.7, 0.8), (0.6, 0.7), (0.5, 0.6), (-1.0, 0.5), (-1.0, 0.8))


@dataclass(frozen=True)
class Round:
    """A question which of some states is meant: the states as indices, and the request."""

    shown: tuple[int, ...]
    request: ChatRequest

    @property
    def digest(self) -> str:
        """Hash (hex) of everything that the model is told."""
        texts = [message.text for message in self.request.messages]
        return hashlib.sha256(json.dumps(texts).encode()).hexdigest()


@dataclass(frozen=True)
class Choosing:
    """A question of the benchmark with what `select=llm` asks about it.

    Attributes
    ----------
    question
        The question.
    first
        The state that scores best.
    sure
        Whether `select=auto` takes it unasked.
    rounds
        The questions to the model: about a few states, and about all if it finds none among these.
    """

    question: Question
    first: int
    sure: bool
    rounds: tuple[Round, ...]


def described(name: str, version: MapVersion, per: Per = Per.STATE) -> Asked:
    """Return the descriptions of a site that the replies give, and the states without one."""
    plan = plan_descriptions(version, per, again=True, leads=0)
    replies = read_replies(REPLIES / f"describe-{name}.jsonl", ChatSettings())
    if per is Per.KIND and (of_kinds := REPLIES / f"describe-kinds-{name}.jsonl").exists():
        replies |= read_replies(of_kinds, ChatSettings())
    return take_replies(plan, replies, ModelBudget("the benchmark"))


def description_requests(subjects: Sequence[Subject]) -> dict[str, ChatRequest]:
    """Return the requests of `waygraph describe` by their ids."""
    return {subject.digest: request_for(subject.request, PageReply) for subject in subjects}


def choosings(run: Run, text: TextEncoder) -> Iterator[Choosing]:
    """Yield what `select=llm` asks about each question of a site."""
    pages = encoded_pages(run.corpus, text)
    queries = text.encode_queries([question.query.ask for question in run.questions])
    for question, row, query in zip(run.questions, run.scores, queries, strict=True):
        first = tuple(int(state) for state in np.argsort(-row, kind="stable")[:CANDIDATES])
        candidates = []
        for rank, state in enumerate(first, start=1):
            seen, page = run.corpus.observations[state], pages[state]
            best = page.rows[int((page.vectors @ query.T).max(1).argmax())]
            description = run.corpus.descriptions.get(seen.node_id)
            generated = description is not None and best in description.texts
            match = MatchModel(text=best, score=0.0, generated=generated)
            hit = Hit(rank=rank, node_id=seen.node_id, url=seen.url, title=seen.title, score=row[state], matched=match)
            texts = tuple(segment.text for segment in seen.segments)
            candidates.append(RetrievedState(hit, texts, lambda: None, partial(run.costs.__getitem__, state)))
        hits = [candidate.hit for candidate in candidates]
        rounds = tuple(
            Round(tuple(first[index] for index in shown), _request(question, [candidates[index] for index in shown]))
            for shown in shortlists(hits, CANDIDATES)
        )
        described = bool(run.corpus.descriptions)
        level = confidence(text.fingerprint, hits, described=described)
        sure = is_sure(level, nothing_matches=nothing_matches(text.fingerprint, hits, described=described))
        yield Choosing(question, first[0], sure, rounds)


def _request(question: Question, candidates: Sequence[RetrievedState]) -> ChatRequest:
    mark = hashlib.sha256(question.query.ask.encode()).hexdigest()[:16]
    parts = candidate_parts(SelectionQuery(question.query.ask), candidates, mark=mark, view=CandidateView())
    told = "\n".join(part for part in parts if isinstance(part, str))
    return ChatRequest((ChatMessage.system(INSTRUCTIONS), ChatMessage.user(told)))


@dataclass(frozen=True)
class Chosen:
    """The choices of a model on one site.

    Attributes
    ----------
    right
        For each question whose page is mapped: whether the chosen state is a right one.
    refused_mapped
        Number of these questions for which the model chose none.
    refused_unmapped
        For each question without an answer: whether the model chose none.
    missing
        Number of questions without a reply.
    chars
        Characters of each request.
    """

    right: tuple[bool, ...]
    refused_mapped: int
    refused_unmapped: tuple[bool, ...]
    missing: int
    chars: tuple[int, ...]


def chosen(asked: Sequence[Choosing], replies: Mapping[str, ChatReply]) -> Chosen:
    """Return what the model chose.

    A missing first reply counts as the first hit, a missing second one as none, as with `select=llm`.
    """
    right, refused, unmapped, missing, chars = [], 0, [], 0, []
    for each in asked:
        state: int | None = None
        told = 0
        for question in each.rounds:
            told += sum(len(message.text) for message in question.request.messages)
            if (reply := replies.get(question.digest)) is None:
                missing += 1
                state = each.first if question is each.rounds[0] else None
                break
            if (choice := parse_reply(reply, PageChoice).choice) is not None:
                state = question.shown[choice - 1]
                break
        chars.append(told)
        if each.question.targets:
            refused += state is None
            right.append(state in each.question.targets)
        else:
            unmapped.append(state is None)
    return Chosen(tuple(right), refused, tuple(unmapped), missing, tuple(chars))


def report_questions(asked: Sequence[Choosing]) -> dict[str, Any]:
    """Return how often a model is asked, what a question costs, and whether it shows the right page."""
    from rs_bpe.bpe import openai  # only this command counts tokens

    count = openai.o200k_base().count
    mapped = [each for each in asked if each.question.targets]

    def tokens(number: int) -> dict[str, float]:
        of = [each.rounds[min(number, len(each.rounds) - 1)] for each in asked]
        told = [sum(count(message.text) for message in each.request.messages) for each in of]
        lines = [count(each.request.messages[-1].text) / len(each.shown) for each in of]
        return {"tokens of a question": statistics.fmean(told), "tokens of a candidate": statistics.fmean(lines)}

    def shown(number: int) -> float:
        rounds = (each.rounds[min(number, len(each.rounds) - 1)] for each in mapped)
        return statistics.fmean(
            bool({*r.shown} & each.question.targets) for r, each in zip(rounds, mapped, strict=True)
        )

    sure = [each for each in mapped if each.sure]
    return {
        "questions": len(mapped),
        "taken unasked": len(sure),
        "of these right": sum(each.first in each.question.targets for each in sure),
        "few": {**tokens(0), "shows a right page": shown(0)},
        "all": {**tokens(1), "shows a right page": shown(1)},
    }


def with_choices(run: Run, asked: Sequence[Choosing], choices: Chosen) -> list[list[float]]:
    """Return the ranks of the targets when the chosen state is put first: 1 where it is right, else 2 at best."""
    ranks, right = [], iter(choices.right)
    for each, row in zip(asked, run.scores, strict=True):
        if each.question.targets:
            of_search = ranks_of(each.question.targets, row)
            ranks.append([1.0, *of_search[1:]] if next(right) else [max(rank, 2.0) for rank in of_search])
    return ranks


def write_requests(options: argparse.Namespace, sites: Sequence[str]) -> None:
    """Write the files of requests."""
    options.out.mkdir(parents=True, exist_ok=True)
    remembering = remembering_encoder("text", options.store)
    for name in sites:
        corpus, version = read_corpus(name, options.store), open_map(name, options.store)
        files = {
            f"describe-{name}": description_requests(
                plan_descriptions(version, Per.STATE, again=True, leads=0).subjects
            )
        }
        if kinds := [each for each in plan_descriptions(version, Per.KIND, again=True, leads=0).subjects if each.kind]:
            files[f"describe-kinds-{name}"] = description_requests(kinds)
        if options.described:
            corpus = replace(corpus, descriptions=described(name, version).descriptions)
        (run,) = runs([corpus], remembering.text)
        step = "choose-described" if options.described else "choose"
        files[f"{step}-{name}"] = {
            each.digest: request_for(each.request, PageChoice)
            for choosing in choosings(run, remembering.text)
            for each in choosing.rounds
        }
        for stem, requests in files.items():
            file = options.out / f"{stem}.jsonl"
            file.write_text("".join(batch_lines(requests, ChatSettings(model=options.model))), encoding="utf-8")
            print(f"{len(requests)} requests in {file}")
    remembering.save()


def choices_of(run: Run, text: TextEncoder, step: str) -> tuple[list[Choosing], Chosen]:
    """Return what was asked about a site in a step, and what the model chose."""
    asked = list(choosings(run, text))
    return asked, chosen(asked, read_replies(REPLIES / f"{step}-{run.corpus.name}.jsonl", ChatSettings()))


def report_choices(measured: Sequence[tuple[Run, list[Choosing], Chosen]]) -> dict[str, Any]:
    """Return how often the model chose a right state, and how often none."""
    every = [choices for _, _, choices in measured]
    right = [each for choices in every for each in choices.right]
    unmapped = [each for choices in every for each in choices.refused_unmapped]
    return {
        "right": statistics.fmean(right),
        "questions": len(right),
        "chose none although the page is mapped": sum(choices.refused_mapped for choices in every),
        "chose none where there is no answer": [sum(unmapped), len(unmapped)],
        "without a reply": sum(choices.missing for choices in every),
        "characters of a request, mean": round(statistics.fmean(c for choices in every for c in choices.chars)),
        "right by site": {run.corpus.name: statistics.fmean(choices.right) for run, _, choices in measured},
    }


def by_closeness(of: Sequence[Run], text: TextEncoder, found: Mapping[str, Ranks]) -> list[dict[str, Any]]:
    """Return recall@1 by the cosine of a question to the nearest generated text of its pages.

    A gain that came from texts which are the question itself would be an artefact: both are by language models.
    """
    closest: list[float] = []
    for run in of:
        for question in run.questions:
            if question.targets:
                ids = (run.corpus.observations[state].node_id for state in sorted(question.targets))
                own = list(dict.fromkeys(each for node_id in ids for each in run.corpus.descriptions[node_id].texts))
                asked, *others = text.encode_texts([question.query.ask, *own])
                closest.append(max(float(each[0] @ asked[0]) for each in others))
    first = {name: [each[0] <= 1 for site in ranks.values() for each in site] for name, ranks in found.items()}
    return [
        {
            "cosine": [low, high],
            "questions": len(within),
            "recall@1": {name: statistics.fmean(right[i] for i in within) for name, right in first.items()},
        }
        for low, high in CLOSENESS
        if (within := [i for i, cosine in enumerate(closest) if low <= cosine < high])
    ]


def measure(options: argparse.Namespace, sites: Sequence[str]) -> dict[str, Any]:
    """Measure search without a model, with descriptions, with the choice, and with both."""
    remembering = remembering_encoder("text", options.store)
    text = remembering.text
    corpora = [read_corpus(name, options.store, PAGES if options.pages else FOLDER) for name in sites]
    asked = [described(name, open_map(name, options.store), options.per) for name in sites]
    with_descriptions = [
        replace(corpus, descriptions=of.descriptions) for corpus, of in zip(corpora, asked, strict=True)
    ]
    result: dict[str, Any] = {
        **run_info(),
        **identity(text),
        "split": options.split,
        "states": sum(len(corpus.observations) for corpus in corpora),
        "descriptions per": str(options.per),
        "states without a description": sum(len(of.failures) for of in asked),
    }
    plain, with_texts = runs(corpora, text), runs(with_descriptions, text)
    remembering.save()
    base = top1(plain)
    ranks = {"search": base, "with descriptions": top1(with_texts)}
    if not options.pages and options.per is Per.STATE:
        for step, of in (("choose", plain), ("choose-described", with_texts)):
            if all((REPLIES / f"{step}-{name}.jsonl").exists() for name in sites):
                choices = [(run, *choices_of(run, text, step)) for run in of]
                result[step] = report_choices(choices)
                ranks[step] = {run.corpus.name: with_choices(run, made, said) for run, made, said in choices}
    if not options.pages:
        result["no-answer AUC, search"] = area_under_curve(*best_scores(plain))
        fitted = float(np.quantile(best_scores(with_texts)[0], FALSE_FLAGS))
        result["nothing matches, with descriptions, fitted"] = flags(with_texts, round(fitted, 3))
        result["nothing matches, with descriptions, as served"] = flags(with_texts, DESCRIBED_TEXT_THRESHOLD)
        result["confidence, with descriptions"] = confidence_levels(with_texts, DESCRIBED_TEXT_LEVELS)
    if not any(of.failures for of in asked):
        result["by closeness of the nearest generated text"] = by_closeness(with_texts, text, ranks)
    result["questions"] = sum(map(len, base.values()))
    result["systems"] = {name: summary(found) for name, found in ranks.items()}
    result["minus search"] = {name: compare(found, base) for name, found in ranks.items() if found is not base}
    result["by site"] = {name: {site: summary({site: found[site]}) for site in found} for name, found in ranks.items()}
    result["by style"] = {name: by_style(corpora, found) for name, found in ranks.items()}
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=("requests", "measure", "questions"))
    parser.add_argument("--store", type=Path, default=Path("retrieval-maps"))
    parser.add_argument("--split", choices=("dev", "test"), default="dev")
    parser.add_argument("--only", nargs="*", metavar="SITE", help="these sites of the split alone")
    parser.add_argument("--pages", action="store_true", help="ask about nearly every page instead (questions/pages)")
    parser.add_argument("--per", type=Per, choices=list(Per), default=Per.STATE, help="what has a description")
    parser.add_argument("--described", action="store_true", help="write the requests about the described map")
    parser.add_argument("--model", default="model", help="name of the model in requests")
    parser.add_argument("--out", type=Path, default=Path("requests"), help="where requests are written")
    parser.add_argument("--save", action="store_true", help="write bench/results/with-model-SPLIT.json")
    options = parser.parse_args()

    folder = PAGES if options.pages else FOLDER
    with_questions = [name for name in names(options.split) if (folder / f"{name}.yaml").exists()]
    sites = [name for name in with_questions if name in (options.only or with_questions)]
    if options.command == "requests":
        write_requests(options, sites)
        return
    if options.command == "questions":
        remembering = remembering_encoder("text", options.store)
        for run in runs([read_corpus(name, options.store, folder) for name in sites], remembering.text):
            asked = list(choosings(run, remembering.text))
            print(run.corpus.name, json.dumps(report_questions(asked), indent=1), flush=True)
        remembering.save()
        return
    result = measure(options, sites)
    print(json.dumps(result, indent=1))
    if options.save:
        parts = ["pages"] * options.pages + ["kinds"] * (options.per is Per.KIND) + (options.only or [])
        suffix = "".join(f"-{part}" for part in parts)
        write_result(RESULTS / f"with-model-{options.split}{suffix}.json", result)


if __name__ == "__main__":
    main()
