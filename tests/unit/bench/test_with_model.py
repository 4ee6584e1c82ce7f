"""The benchmark of a language model's choices: what counts as right, as a refusal and as missing."""

import json

import numpy as np
import pytest

from bench.retrieval.maps import names
from bench.retrieval.queries import Query, Question
from bench.retrieval.reasoning import Run
from bench.retrieval.systems import Corpus
from bench.retrieval.with_model import REPLIES, Choosing, Round, chosen, with_choices
from waygraph.agents.describe.prompt import PageReply
from waygraph.agents.models.batch_file import read_replies
from waygraph.agents.models.chat import ChatMessage, ChatReply, ChatRequest, no_usage
from waygraph.agents.models.structured import parse_reply
from waygraph.agents.webnavigator.page_selector import PageChoice
from waygraph.core.settings import ChatSettings
from waygraph.index.graph import InteractionGraph


def asked(ask: str, targets: set[int], first: tuple[int, ...], *, at: bool = True) -> Choosing:
    question = Question(Query("x", ask, ("/",) if at else ()), frozenset(targets), frozenset(targets))
    return Choosing(question, first[0], False, (Round(first, ChatRequest((ChatMessage.user(ask),))),))


def choice(number: int | None) -> ChatReply:
    return ChatReply(json.dumps({"reasoning": "", "choice": number}), no_usage())


ASKED = [
    asked("right", {2}, (0, 2)),
    asked("wrong", {1}, (0, 1)),
    asked("none", {0}, (0, 1)),
    asked("missing", {0}, (0, 1)),
    asked("no answer", set(), (0, 1), at=False),
]
SAID = {each.rounds[0].digest: reply for each, reply in zip(ASKED, [choice(2), choice(1), choice(None)], strict=False)}
SAID[ASKED[4].rounds[0].digest] = choice(None)


def test_a_choice_is_right_when_it_names_a_target_and_a_missing_one_is_the_first_hit():
    found = chosen(ASKED, SAID)
    assert found.right == (True, False, False, True)
    assert (found.refused_mapped, found.refused_unmapped, found.missing) == (1, (True,), 1)


def test_all_states_count_if_none_of_the_few_was_chosen():
    few, every = (
        Round(shown, ChatRequest((ChatMessage.user(f"among {len(shown)}"),))) for shown in ((0, 1), (0, 1, 2))
    )
    asking = Choosing(asked("late", {2}, (0,)).question, 0, False, (few, every))
    assert chosen([asking], {few.digest: choice(None), every.digest: choice(3)}).right == (True,)
    assert chosen([asking], {few.digest: choice(None)}).missing == 1


def test_a_right_choice_is_first_and_a_wrong_one_leaves_the_second_place_at_best():
    scores = np.array([[3.0, 2.0, 1.0]] * 5)
    run = Run(Corpus("x", InteractionGraph(()), (), ()), tuple(each.question for each in ASKED), scores, ())
    assert with_choices(run, ASKED, chosen(ASKED, SAID)) == [[1.0], [2.0], [2.0], [1.0]]


@pytest.mark.parametrize("file", sorted(REPLIES.glob("*.jsonl")), ids=lambda file: file.stem)
def test_kept_replies_have_the_forms_that_are_asked_for(file):
    is_description = file.stem.startswith("describe-")
    for reply in read_replies(file, ChatSettings()).values():
        parse_reply(reply, PageReply if is_description else PageChoice)


def test_measured_sites_have_replies():
    kept = {file.stem for file in REPLIES.glob("*.jsonl")}
    assert {stem for stem in kept if not stem.startswith(("describe-kinds-", "describe-leads-"))} == {
        f"describe-{name}" for name in {*names("dev"), *names("test")}
    }
