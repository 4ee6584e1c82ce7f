"""The `text` encoder around other sentence models: as sentence-transformers saved them, or refused."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from transformers import BertConfig, BertModel, MPNetConfig, MPNetModel, PreTrainedTokenizerFast

from tests.tiny_jina import change_json, one_thread, write_json  # noqa: F401
from waygraph.core.errors import InvalidInput, WeightsMissing
from waygraph.core.settings import EncodeSettings
from waygraph.index.graph import Box, Observation, Segment
from waygraph.pipeline.encode.registry import create_encoder
from waygraph.pipeline.encode.text.encoder import TextEncoder, fingerprint, has_adapters
from waygraph.pipeline.encode.text.other_models import read_any_model
from waygraph.pipeline.encode.text.sentence_model import SentenceModel, _read_model
from waygraph.pipeline.encode.text.sentence_recipe import SentenceRecipe, read_recipe
from waygraph.pipeline.encode.text.weights import MODELS, TextWeights, find_weights
from waygraph.pipeline.encode.text_counts import count_segments

WORDS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "where", "are", "my", "unpaid", "orders", "prices", "change", "page")
PROMPTS = {"query": "change ", "document": "page "}
MAX_TOKENS = 20


@pytest.fixture(scope="module")
def plain(tmp_path_factory) -> Path:
    """A tiny BERT with its tokenizer, without a word about pooling."""
    folder = tmp_path_factory.mktemp("bert")
    tokenizer = Tokenizer(models.WordLevel({word: number for number, word in enumerate(WORDS)}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    names = {"pad_token": "[PAD]", "unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]"}
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, **names).save_pretrained(folder)
    torch.manual_seed(0)
    sizes = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 48}
    BertModel(BertConfig(vocab_size=len(WORDS), **sizes)).save_pretrained(folder)
    return folder


def saved(plain: Path, folder: Path, *, pooling: str = "mean", prompts: dict[str, str] | None = None) -> Path:
    """`plain` in the layout of sentence-transformers."""
    shutil.copytree(plain, folder)
    kinds = [("", "Transformer"), ("1_Pooling", "Pooling"), ("2_Normalize", "Normalize")]
    modules = [
        {"idx": number, "name": str(number), "path": path, "type": f"sentence_transformers.models.{kind}"}
        for number, (path, kind) in enumerate(kinds)
    ]
    write_json(folder / "modules.json", modules)
    write_json(folder / "sentence_bert_config.json", {"max_seq_length": MAX_TOKENS, "do_lower_case": False})
    write_json(folder / "config_sentence_transformers.json", {"prompts": prompts or {}, "default_prompt_name": None})
    for path in ("1_Pooling", "2_Normalize"):
        (folder / path).mkdir()
    old = {"cls": "cls_token", "mean": "mean_tokens", "max": "max_tokens"}
    flags = {f"pooling_mode_{name}": mode == pooling for mode, name in old.items()}
    write_json(folder / "1_Pooling" / "config.json", {"word_embedding_dimension": 32, **flags})
    return folder


def load(folder: Path, encoder: str = "text") -> TextEncoder:
    return create_encoder(EncodeSettings(encoder=encoder, weights=folder, dtype="float32"))


def page(*texts: str) -> Observation:
    return Observation("n1", "http://shop.test/a", "", tuple(Segment(text, "text", Box(0, 0, 9, 9)) for text in texts))


@pytest.mark.parametrize("prompts", [None, PROMPTS], ids=["plain", "prompts"])
@pytest.mark.parametrize("pooling", ["mean", "cls"])
def test_vectors_are_those_of_sentence_transformers(plain, tmp_path, pooling, prompts):
    library = pytest.importorskip("sentence_transformers")
    folder = saved(plain, tmp_path / "model", pooling=pooling, prompts=prompts)
    encoder, theirs = load(folder), library.SentenceTransformer(str(folder), device="cpu")
    questions = ["where are my unpaid orders", "prices"]
    for question, (vector,) in zip(questions, encoder.encode_queries(questions), strict=True):
        assert np.abs(vector - theirs.encode_query(question, normalize_embeddings=True)).max() < 1e-5
    seen = page("unpaid orders", "change prices")
    context = encoder.prepare_site(count_segments([seen]))
    (encoded,) = encoder.encode_pages([seen], context)
    rows = theirs.encode_document(list(encoded.rows), normalize_embeddings=True)
    # What is added to every row, see `waygraph.pipeline.encode.text.encoder`, is the same for all.
    added = encoded.vectors - rows
    assert np.abs(added - added[0]).max() < 1e-5


def test_the_fingerprint_follows_pooling_prompts_and_length(plain, tmp_path):
    folders = [
        saved(plain, tmp_path / "mean"),
        saved(plain, tmp_path / "cls", pooling="cls"),
        saved(plain, tmp_path / "prompts", prompts=PROMPTS),
    ]
    longer = saved(plain, tmp_path / "longer")
    change_json(longer / "sentence_bert_config.json", lambda c: c.update(max_seq_length=64))
    found = {load(folder).fingerprint for folder in (*folders, longer)}
    assert len(found) == 4


def test_the_fingerprint_without_an_adapter_is_that_of_recipes_and_files():
    published = TextWeights(Path("/nowhere"), "package", "53aa51172d14", "be50c3628f2b")
    assert published.recipe == SentenceRecipe("mean", 256, "", "")
    assert fingerprint(published, 384) == "text-9163ff682cb4134f"


def test_the_larger_encoder_makes_the_same_vectors_from_the_same_model_under_a_name_and_fingerprint_of_its_own(
    plain, tmp_path
):
    folder = saved(plain, tmp_path / "model")
    small, large = load(folder), load(folder, "text-large")
    assert (small.name, large.name) == ("text", "text-large")
    assert small.fingerprint.removeprefix("text-") == large.fingerprint.removeprefix("text-large-")
    assert np.array_equal(small.encode_query("unpaid orders"), large.encode_query("unpaid orders"))
    seen = page("unpaid orders", "change prices")
    context = large.prepare_site(count_segments([seen]))
    (by_small,), (by_large,) = small.encode_pages([seen], context), large.encode_pages([seen], context)
    assert np.array_equal(by_small.vectors, by_large.vectors)


def test_a_copy_of_the_default_model_in_its_own_layout_is_the_default_model():
    weights = find_weights(allow_hub=False)
    if not (weights.folder / "modules.json").is_file():
        pytest.skip("these weights come without modules.json")
    assert read_recipe(weights.folder) == SentenceRecipe()


@pytest.fixture(scope="module")
def mpnet(plain, tmp_path_factory) -> Path:
    """A tiny MPNet, the architecture of the larger model."""
    folder = shutil.copytree(plain, tmp_path_factory.mktemp("mpnet") / "model")
    torch.manual_seed(1)
    sizes = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 48}
    model = MPNetModel(MPNetConfig(vocab_size=len(WORDS), max_position_embeddings=514, **sizes))
    # Fresh models have small parameters, with which attention is nearly even whatever its bias is.
    torch.nn.init.normal_(model.encoder.relative_attention_bias.weight, std=3.0)
    model.save_pretrained(folder)
    return folder


@pytest.mark.parametrize("batch_size", [1, 4], ids=["alone", "padded"])
def test_mpnet_in_onnx_runtime_computes_the_vectors_of_transformers(mpnet, batch_size):
    tokenizer = Tokenizer.from_file(str(mpnet / "tokenizer.json"))
    texts = ["orders", "where are my unpaid orders", "change prices page " * 100, "orders page " * 9]
    own, theirs = (
        SentenceModel(*read(mpnet, 1), tokenizer, batch_size=batch_size) for read in (_read_model, read_any_model)
    )
    assert type(own._token_vectors).__name__ == "MPNet"
    assert np.abs(own.embed_uncached(texts) - theirs.embed_uncached(texts)).max() < 1e-5


@pytest.fixture
def adapter(plain, tmp_path) -> Path:
    """An adapter of rank 2 for one linear map of the tiny BERT."""
    torch.manual_seed(2)
    name = "encoder.layer.1.attention.self.value.weight"
    factors = {f"{name}.a": torch.randn(2, 32).half(), f"{name}.b": torch.randn(32, 2).half()}
    save_file(factors, tmp_path / "adapter.safetensors")
    return tmp_path / "adapter.safetensors"


def test_an_adapter_adds_its_product_to_the_parameters_and_leaves_the_model_as_it_is(plain, adapter, tmp_path):
    texts = ["where are my unpaid orders", "prices"]
    model = load(plain).model
    before = model.embed_uncached(texts)
    folder = shutil.copytree(plain, tmp_path / "merged")
    tensors, factors = load_file(plain / "model.safetensors"), load_file(adapter)
    name = next(iter(factors)).rpartition(".")[0]
    tensors[name] = tensors[name] + factors[f"{name}.b"].float() @ factors[f"{name}.a"].float()
    save_file(tensors, folder / "model.safetensors", {"format": "pt"})
    adapted = model.with_adapter(adapter)
    assert np.allclose(adapted.embed_uncached(texts), load(folder).model.embed_uncached(texts), atol=1e-6)
    assert not np.allclose(adapted.embed_uncached(texts), before, atol=1e-3)
    assert np.array_equal(model.embed_uncached(texts), before)


def adapted_parts(encoder, adapter):
    return {
        "page_model": encoder.model.with_adapter(adapter, cache_size=9),
        "query_model": encoder.model.with_adapter(adapter),
    }


@pytest.mark.parametrize("part", ["page_model", "query_model"])
def test_pages_and_queries_have_adapters_of_their_own(plain, adapter, part):
    encoder = load(plain)
    adapted = TextEncoder(encoder.model, encoder.weights, **{part: adapted_parts(encoder, adapter)[part]})
    seen = page("unpaid orders", "change prices")
    context = encoder.prepare_site(count_segments([seen]))
    same_query = np.allclose(adapted.encode_query("unpaid orders"), encoder.encode_query("unpaid orders"), atol=1e-3)
    (one,), (other,) = (each.encode_pages([seen], context) for each in (encoder, adapted))
    assert (np.allclose(one.vectors, other.vectors, atol=1e-3), same_query) == (
        part == "query_model",
        part == "page_model",
    )


def test_vectors_of_an_adapter_are_cached_if_asked_for(plain, adapter):
    model = load(plain).model
    for cache_size, embedded in ((0, 2), (9, 1)):
        adapted = model.with_adapter(adapter, cache_size=cache_size)
        adapted.embed(["prices"])
        adapted.embed(["prices"])
        assert adapted.embedded == embedded


def test_only_the_published_weights_of_text_have_adapters(plain):
    weights = load(plain).weights
    published = replace(weights, model_sha256=MODELS["text"].sha256)
    assert has_adapters(published, "text")
    assert not has_adapters(weights, "text")
    # An encoder of another name with the same weights has thresholds of its own.
    assert not has_adapters(published, "text-large")
    assert not has_adapters(replace(weights, model_sha256=MODELS["text-large"].sha256), "text-large")


def test_the_adapter_for_pages_is_part_of_the_fingerprint_and_that_for_queries_is_not(plain, adapter, monkeypatch):
    monkeypatch.setattr("waygraph.pipeline.encode.text.encoder.PAGE_ADAPTER", adapter)
    encoder = load(plain)
    parts = adapted_parts(encoder, adapter)
    queries, pages, both = (
        TextEncoder(encoder.model, encoder.weights, **{name: parts[name] for name in names}).fingerprint
        for names in (["query_model"], ["page_model"], parts)
    )
    assert queries == encoder.fingerprint != pages == both


@pytest.mark.parametrize(
    "damage",
    [
        lambda factors: factors.pop("encoder.layer.1.attention.self.value.weight.b"),
        lambda factors: factors.update({"encoder.layer.9.x.weight.a": torch.ones(2, 32)}),
        lambda factors: factors.update({"encoder.layer.1.attention.self.value.weight.a": torch.ones(2, 31)}),
        lambda factors: factors.update({"encoder.layer.1.attention.self.value.weight.a": torch.ones(3, 32)}),
    ],
    ids=["half", "unknown", "shape", "rank"],
)
def test_an_adapter_that_does_not_fit_is_refused(plain, adapter, damage):
    factors = load_file(adapter)
    damage(factors)
    save_file(factors, adapter)
    with pytest.raises(WeightsMissing, match=r"adapter\.safetensors"):
        load(plain).model.with_adapter(adapter)


def test_an_adapter_that_cannot_be_read_is_refused(plain, adapter):
    adapter.write_bytes(b"no tensors")
    with pytest.raises(WeightsMissing, match="cannot be read"):
        load(plain).model.with_adapter(adapter)
    adapter.unlink()
    with pytest.raises(WeightsMissing, match="cannot be read"):
        load(plain).model.with_adapter(adapter)


def test_short_texts_are_encoded_without_adapters(plain, adapter):
    encoder = load(plain)
    adapted = TextEncoder(encoder.model, encoder.weights, **adapted_parts(encoder, adapter))
    (text,), (same,) = adapted.encode_texts(["unpaid orders"]), encoder.encode_queries(["unpaid orders"])
    assert np.array_equal(text, same)


def test_mpnet_with_a_missing_tensor_is_refused(mpnet, tmp_path):
    folder = shutil.copytree(mpnet, tmp_path / "model")
    change_json(folder / "config.json", lambda c: c.update(num_hidden_layers=3))
    with pytest.raises(WeightsMissing, match=r"encoder\.layer\.2\.attention\.attn\.k\.weight"):
        load(folder, "text-large")


REFUSED = {
    "a dense layer": (
        "modules.json",
        lambda m: m.insert(2, {"path": "2_Dense", "type": "sentence_transformers.models.Dense"}),
        "Transformer, Pooling, Dense",
    ),
    "another pooling": ("1_Pooling/config.json", lambda c: c.update(pooling_mode="lasttoken"), "by lasttoken"),
    "two poolings": (
        "1_Pooling/config.json",
        lambda c: c.update(pooling_mode_cls_token=True, pooling_mode_mean_tokens=True),
        "pools by",
    ),
    "the prompt left out": ("1_Pooling/config.json", lambda c: c.update(include_prompt=False), "without the prompt"),
    "lower case": ("sentence_bert_config.json", lambda c: c.update(do_lower_case=True), "prepares texts"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_model_with_unsupported_modules_is_refused(plain, tmp_path, what):
    file, change, message = REFUSED[what]
    folder = saved(plain, tmp_path / "model")
    change_json(folder / file, change)
    with pytest.raises(InvalidInput, match=message) as caught:
        load(folder)
    assert "docs/encoders.md" in caught.value.hint


@pytest.mark.parametrize("file", ["modules.json", "1_Pooling/config.json", "config_sentence_transformers.json"])
def test_truncated_file_is_refused_by_name(plain, tmp_path, file):
    folder = saved(plain, tmp_path / "model")
    (folder / file).write_text((folder / file).read_text()[:7])
    with pytest.raises(WeightsMissing, match="cannot be read"):
        load(folder)


def test_a_repository_is_found_by_name_in_the_cache(plain, tmp_path, monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    repository = tmp_path / "models--someone--sentences"
    (repository / "refs").mkdir(parents=True)
    (repository / "refs" / "main").write_text("abc123")
    folder = saved(plain, repository / "snapshots" / "abc123", pooling="cls")
    found = find_weights(Path("someone/sentences"))
    assert (found.source, found.folder, found.recipe.pooling) == ("settings", folder, "cls")
    with pytest.raises(WeightsMissing, match="hub is switched off"):
        find_weights(Path("someone/else"))


def test_query_that_would_be_truncated_is_refused_and_one_that_fits_is_not(plain, tmp_path):
    encoder = load(saved(plain, tmp_path / "model", prompts=PROMPTS))
    words = MAX_TOKENS - 3  # the prompt is one token, and two are special
    assert encoder.encode_query("orders " * words).shape == (1, 32)
    with pytest.raises(InvalidInput, match=f"has {MAX_TOKENS + 1} tokens; the model reads {MAX_TOKENS}"):
        encoder.encode_query("orders " * (words + 1))
    with pytest.raises(InvalidInput, match="has 10003 tokens"):
        encoder.encode_queries(["orders", "orders " * 10_000])


def test_truncation_of_pages_is_logged_once(plain, tmp_path, caplog):
    encoder = load(saved(plain, tmp_path / "model"))
    encoder.model.embed(["orders"])
    assert "encode/cut_text" not in caplog.text
    encoder.model.embed(["orders " * 30, "prices"])
    encoder.model.embed(["orders " * 31])
    assert caplog.text.count("encode/cut_text 1 of 2 texts") == caplog.text.count("encode/cut_text") == 1


@pytest.mark.parametrize("question", ["caf\udce9", "half of \ud83d a smile"])
def test_query_that_is_not_a_text_is_refused(plain, tmp_path, question):
    with pytest.raises(InvalidInput, match="lone surrogates"):
        load(saved(plain, tmp_path / "model")).encode_query(question)


def test_model_without_a_pooling_configuration_uses_mean_pooling(plain):
    encoder = load(plain)
    assert json.loads((plain / "config.json").read_text())["max_position_embeddings"] == 512
    assert encoder.weights.recipe == SentenceRecipe()
