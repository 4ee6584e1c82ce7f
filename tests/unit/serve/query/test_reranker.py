"""A cross-encoder orders hits anew: a tiny checkpoint with random parameters, in the layout of transformers."""

import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from transformers import BertConfig, BertForSequenceClassification, BertModel, PreTrainedTokenizerFast

from tests.small_map import SmallMap
from tests.tiny_jina import one_thread  # noqa: F401
from waygraph.core.errors import InvalidInput, WeightsMissing
from waygraph.core.schemas import Filter, NavigateRequest, SearchRequest
from waygraph.core.settings import ServeSettings, Settings
from waygraph.index.catalog.hits import ExplainedRow, HitExplanation, SearchHit
from waygraph.index.graph import Action, Lead
from waygraph.index.store import Store
from waygraph.pipeline.encode.registry import create_encoder
from waygraph.pipeline.encode.text.cross_encoder import CrossEncoder
from waygraph.serve.query.maps import Maps
from waygraph.serve.query.reranker import LEAD_FACTOR, Reranker

WORDS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "credit", "card", "returns", "address", "money", "shop", "your", "account")
TEXTS = ["card", "your account", "money returns money " * 30, "credit card number", "address"]
QUERY = "add a credit card"


def checkpoint(folder: Path, *, labels: int = 1, seed: int = 0) -> Path:
    """Write a tiny cross-encoder."""
    tokenizer = Tokenizer(models.WordLevel({word: number for number, word in enumerate(WORDS)}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    names = {"pad_token": "[PAD]", "unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]"}
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, model_max_length=64, **names)
    fast.save_pretrained(folder)
    torch.manual_seed(seed)
    sizes = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 48}
    config = BertConfig(vocab_size=len(WORDS), num_labels=labels, initializer_range=0.5, **sizes)
    BertForSequenceClassification(config).save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def model(tmp_path_factory) -> Path:
    return checkpoint(tmp_path_factory.mktemp("reranker"))


@pytest.fixture(scope="module")
def stores(tmp_path_factory) -> str:
    """Two sites with the same four states."""
    store = Store.open(str(tmp_path_factory.mktemp("maps")), create=True)
    encoder = create_encoder(Settings().encode)
    for site in ("tea.example", "other.example"):
        store.publish(SmallMap(site).draft(encoder, store.blobs))
    return store.location


def maps(store: str, reranker: Path | str, hits: int = 30) -> Maps:
    opened = Maps(Settings(store=store, serve={"reranker": str(reranker), "rerank_hits": hits}))
    opened.open()
    return opened


def hit(rank: int, title: str, lead: Lead | None = None) -> SearchHit:
    matched = HitExplanation((ExplainedRow(0, (0,), title, 0.5, (), 0.5),))
    return SearchHit(rank, f"{rank:032x}", "http://x/", title, 1.0 / rank, matched, lead=lead)


@pytest.mark.parametrize("labels", [1, 2])
def test_scores_are_those_of_transformers_for_each_pair_alone(tmp_path, labels):
    folder = checkpoint(tmp_path, labels=labels)
    encoder = CrossEncoder.load(str(folder))
    theirs = BertForSequenceClassification.from_pretrained(folder)
    tokenizer = PreTrainedTokenizerFast.from_pretrained(folder)
    expected = []
    for text in TEXTS:
        pair = tokenizer(QUERY, text, truncation="longest_first", max_length=64, return_tensors="pt")
        with torch.inference_mode():
            logits = theirs(**pair).logits[0]
        expected.append(float(logits.softmax(0)[1] if labels == 2 else logits[0].sigmoid()))
    found = encoder.scores(QUERY, TEXTS)
    assert np.abs(found - expected).max() < 1e-5
    assert np.ptp(found) > 0.01
    assert np.abs(encoder.scores(QUERY, TEXTS[::-1]) - found[::-1]).max() < 1e-5


def test_hits_that_were_read_come_first_in_the_order_of_their_scores_and_the_others_keep_theirs(model):
    reranker = Reranker(ServeSettings(reranker=str(model)))
    hits = [("x", hit(rank, title)) for rank, title in enumerate([*TEXTS, "unread", "unread too"], start=1)]
    scores = CrossEncoder.load(str(model)).scores(QUERY, TEXTS)
    found = [each for _, each in reranker.reordered(QUERY, hits, TEXTS)]
    best_first = sorted(range(len(TEXTS)), key=lambda index: -scores[index])
    assert [each.title for each in found] == [*(TEXTS[index] for index in best_first), "unread", "unread too"]
    assert [each.rank for each in found] == list(range(1, 8))
    assert [each.reranked is None for each in found] == [False] * 5 + [True] * 2
    assert {each.node_id: each.score for each in found} == {each.node_id: each.score for _, each in hits}
    assert best_first != list(range(len(TEXTS)))


def test_equal_texts_keep_the_order_of_the_search(model):
    hits = [("x", hit(rank, "card")) for rank in range(1, 6)]
    found = Reranker(ServeSettings(reranker=str(model))).reordered(QUERY, hits, ["card"] * 5)
    assert [each.node_id for _, each in found] == [each.node_id for _, each in hits]


def test_leads_are_lowered_as_in_the_search(model):
    lead = Lead("1" * 32, "http://x/", ("card",), "", "", "s", Action("click"), 1)
    plain, lowered = Reranker(ServeSettings(reranker=str(model))).reordered(
        QUERY, [("x", hit(1, "card", lead)), ("x", hit(2, "card"))], ["card", "card"]
    )
    assert plain[1].lead is None
    assert lowered[1].reranked == pytest.approx(LEAD_FACTOR * plain[1].reranked)


def test_search_and_navigate_return_the_states_that_the_cross_encoder_finds_best(stores, model):
    request = SearchRequest(query=QUERY, k=2)
    with maps(stores, "") as plain, maps(stores, model) as reranking:
        before = plain.search("tea.example", SearchRequest(query=QUERY, k=4))
        found = reranking.search("tea.example", request)
        chosen = reranking.navigate(NavigateRequest(site="tea.example", query=QUERY)).node_id
    assert all(each.reranked is None for each in before.hits)
    assert before.confidence is not None
    assert len(found.hits) == 2
    assert [each.rank for each in found.hits] == [1, 2]
    assert found.hits[0].reranked >= found.hits[1].reranked
    assert chosen == found.hits[0].node_id
    # Levels of confidence were measured on the order of the search.
    assert found.confidence is None
    assert found.nothing_matches == before.nothing_matches
    scores = {each.node_id: each.score for each in before.hits}
    assert all(each.score == scores[each.node_id] for each in found.hits)


@pytest.mark.parametrize("where", [Filter(), Filter(visited_only=True)], ids=["plain", "filtered"])
def test_searches_across_sites_are_reranked_as_a_whole(stores, model, where):
    request = SearchRequest(query=QUERY, k=8, **where.model_dump())
    with maps(stores, model, hits=6) as reranking:
        found = reranking.search_all_sites(request)
    assert {each.site for each in found.hits} == {"tea.example", "other.example"}
    read = [each.reranked for each in found.hits[:6]]
    assert read == sorted(read, reverse=True)
    assert [each.reranked for each in found.hits[6:]] == [None, None]
    assert [each.rank for each in found.hits] == list(range(1, 9))


def test_without_a_reranker_no_model_is_loaded(stores):
    with maps(stores, "") as plain:
        assert not plain.reranker
        plain.reranker.check()
        assert len(plain.search_all_sites(SearchRequest(query=QUERY, k=3)).hits) == 3


def test_missing_file_is_refused_by_name_before_anything_is_loaded(model, tmp_path):
    folder = shutil.copytree(model, tmp_path / "model")
    (folder / "tokenizer.json").unlink()
    with pytest.raises(WeightsMissing, match=r"lacks tokenizer\.json") as caught:
        Reranker(ServeSettings(reranker=str(folder))).check()
    assert "WAYGRAPH_SERVE__RERANKER" in caught.value.hint


def test_sentence_model_without_a_layer_that_scores_is_refused(model, tmp_path):
    folder = shutil.copytree(model, tmp_path / "model")
    BertModel(BertConfig.from_pretrained(folder)).save_pretrained(folder)
    with pytest.raises(WeightsMissing, match="does not fit"):
        CrossEncoder.load(str(folder))


def test_damaged_checkpoint_and_more_than_two_classes_are_refused(model, tmp_path):
    with pytest.raises(InvalidInput, match="has 3 classes"):
        CrossEncoder.load(str(checkpoint(tmp_path / "three", labels=3)))
    folder = shutil.copytree(model, tmp_path / "damaged")
    (folder / "model.safetensors").write_bytes(b"half")
    with pytest.raises(WeightsMissing, match="cannot be read"):
        CrossEncoder.load(str(folder))
