"""What an agent wants to do decides among candidates that score nearly alike, without a language model."""

from __future__ import annotations

import pytest

from waygraph.core.schemas import Hit
from waygraph.serve.select import RetrievedState, SelectionQuery
from waygraph.serve.select.rule import RuleSelector
from waygraph.serve.select.top1 import Top1Selector


def candidates(*found: tuple[float, str], reranked: float | None = None) -> list[RetrievedState]:
    return [
        RetrievedState(
            Hit(rank=n, node_id=f"{n}", url=f"http://x/{n}", title="Orders", score=score, reranked=reranked),
            (text,),
            lambda: None,
            lambda: None,
        )
        for n, (score, text) in enumerate(found, start=1)
    ]


LIST, EXPORT = "All orders of the shop", "Orders: export them as a spreadsheet"


@pytest.mark.parametrize("selector", [Top1Selector(), RuleSelector()])
@pytest.mark.parametrize(
    ("intent", "scores", "index"),
    [
        ("download a spreadsheet", (0.80, 0.79), 1),
        ("", (0.80, 0.79), 0),
        ("orders", (0.80, 0.79), 0),
        ("something else entirely", (0.80, 0.79), 0),
        ("download a spreadsheet", (0.80, 0.60), 0),
    ],
)
def test_the_intent_decides_among_near_candidates_only(selector, intent, scores, index):
    found = candidates((scores[0], LIST), (scores[1], EXPORT))
    assert selector.choose(SelectionQuery("orders", intent), found).index == index


def test_the_order_of_a_cross_encoder_stays():
    found = candidates((0.70, LIST), (0.71, EXPORT), reranked=0.9)
    assert Top1Selector().choose(SelectionQuery("orders", "spreadsheet"), found).index == 0
