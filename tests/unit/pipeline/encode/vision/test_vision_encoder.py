"""Other multi-vector models as encoders: `colmodernvbert`, and models that sentence-transformers loads."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import ColModernVBertForRetrieval, ColPaliForRetrieval

from tests.blobs import MemoryBlobs
from tests.tiny_jina import change_tensors, one_thread, picture, write_json  # noqa: F401
from tests.tiny_vision import DIM, make_colmodernvbert, make_colpali, make_tokenizer
from waygraph.core.errors import BadImage, EncodingFailed, InvalidInput, WeightsMissing
from waygraph.core.settings import EncodeSettings
from waygraph.index.graph import Box, Observation, Segment
from waygraph.pipeline.encode.protocol import content_key
from waygraph.pipeline.encode.registry import check_name, create_encoder
from waygraph.pipeline.encode.runtime.model_files import public_name
from waygraph.pipeline.encode.runtime.throughput import OutOfMemoryBackoff
from waygraph.pipeline.encode.vision.colmodernvbert import _processor
from waygraph.pipeline.encode.vision.screenshots import decode
from waygraph.pipeline.encode.vision.vision_encoder import VisionEncoder

SIZES = ((100, 60), (60, 170), (33, 31), (300, 200))
KINDS = ("colmodernvbert", "st")


@pytest.fixture(scope="module")
def folders(tmp_path_factory) -> dict[str, Path]:
    root = tmp_path_factory.mktemp("models")
    return {"colmodernvbert": make_colmodernvbert(root / "vbert"), "st": make_colpali(root / "colpali")}


@pytest.fixture(scope="module")
def blobs() -> MemoryBlobs:
    return MemoryBlobs()


def settings_for(kind: str, folder: Path, **options) -> EncodeSettings:
    if kind == "st":
        return EncodeSettings(encoder=f"st:{folder}", device="cpu", **options)
    return EncodeSettings(encoder=kind, weights=folder, device="cpu", **options)


@pytest.fixture(scope="module")
def encoders(folders, blobs) -> dict[str, VisionEncoder]:
    return {kind: create_encoder(settings_for(kind, folders[kind]), blobs) for kind in KINDS}


def state(blobs: MemoryBlobs, content: bytes | None) -> Observation:
    segments = (Segment("Unpaid orders", "heading", Box(0, 0, 10, 10)),)
    screenshot = "" if content is None else blobs.put(content)
    return Observation("n1", "http://shop.test/orders", "Orders", segments, screenshot=screenshot)


def states(blobs: MemoryBlobs) -> list[Observation]:
    return [state(blobs, picture(width, height, seed=n)) for n, (width, height) in enumerate(SIZES)]


def test_colmodernvbert_equals_the_model_run_by_hand(encoders, folders, blobs):
    model = ColModernVBertForRetrieval.from_pretrained(folders["colmodernvbert"]).eval()
    processor = _processor(folders["colmodernvbert"])
    pages = encoders["colmodernvbert"].encode_pages(states(blobs), {})
    for page, seen in zip(pages, states(blobs), strict=True):
        with torch.inference_mode():
            expected = model(**processor.process_images([decode(blobs[seen.screenshot], "it")])).embeddings[0].numpy()
        assert page.vectors.shape == expected.shape
        assert np.abs(page.vectors - expected).max() < 1e-5
    with torch.inference_mode():
        expected = model(**processor.process_queries(["where are my orders"])).embeddings[0].numpy()
    assert np.abs(encoders["colmodernvbert"].encode_query("where are my orders") - expected).max() < 1e-5


def test_sentence_transformers_equals_the_model_run_by_hand(encoders, folders, blobs):
    model = ColPaliForRetrieval.from_pretrained(folders["st"]).eval()
    processor = encoders["st"].model._model[0].processor
    pages = encoders["st"].encode_pages(states(blobs), {})
    for page, seen in zip(pages, states(blobs), strict=True):
        with torch.inference_mode():
            expected = model(**processor.process_images([decode(blobs[seen.screenshot], "it")])).embeddings[0].numpy()
        assert np.abs(page.vectors - expected).max() < 1e-5


@pytest.mark.parametrize("kind", KINDS)
def test_vectors_have_unit_length_and_the_declared_dimension(encoders, blobs, kind):
    encoder = encoders[kind]
    assert encoder.dim == DIM
    assert encoder.reads == "screenshot"
    for vectors in [page.vectors for page in encoder.encode_pages(states(blobs), {})] + encoder.encode_queries(
        ["a", "b c"]
    ):
        assert vectors.dtype == np.float32
        assert vectors.shape[1] == DIM
        assert np.abs(np.linalg.norm(vectors, axis=1) - 1).max() < 1e-5


@pytest.mark.parametrize("kind", KINDS)
def test_a_batch_equals_batches_of_one(encoders, blobs, kind):
    encoder = encoders[kind]
    together = encoder.encode_pages(states(blobs), {})
    for page, seen in zip(together, states(blobs), strict=True):
        (alone,) = encoder.encode_pages([seen], {})
        assert np.abs(page.vectors - alone.vectors).max() < 1e-5
    questions = ["orders", "where are my orders", "x"]
    for a, b in zip(encoder.encode_queries(questions), map(encoder.encode_query, questions), strict=True):
        assert np.abs(a - b).max() < 1e-5


@pytest.mark.parametrize("kind", KINDS)
def test_bad_input_is_an_error(encoders, blobs, kind):
    encoder = encoders[kind]
    with pytest.raises(BadImage):
        encoder.encode_pages([state(blobs, picture(300, 200)[:-100])], {})
    with pytest.raises(InvalidInput, match="empty"):
        encoder.encode_query(" ")
    with pytest.raises(InvalidInput, match="the limit is 4000"):
        encoder.encode_query("orders " * 10_000)
    assert encoder.encode_pages([], {}) == []
    for content in (picture(1, 1), picture(64, 5000)):
        (page,) = encoder.encode_pages([state(blobs, content)], {})
        assert np.isfinite(page.vectors).all()


@pytest.mark.parametrize("kind", KINDS)
def test_a_state_without_a_screenshot_is_encoded_by_its_text_and_that_is_logged(encoders, blobs, kind, caplog):
    mixed = [state(blobs, picture(80, 60)), state(blobs, None), state(blobs, picture(90, 60))]
    pages = encoders[kind].encode_pages(mixed, {})
    assert [set(page.rows) for page in pages] == [{"screenshot"}, {"Orders"}, {"screenshot"}]
    assert "encode/no_screenshot n1" in caplog.text


@pytest.mark.parametrize("kind", KINDS)
def test_query_that_is_not_a_text_is_refused(encoders, kind):
    with pytest.raises(InvalidInput, match="lone surrogates"):
        encoders[kind].encode_query("caf\udce9")


def test_query_longer_than_the_limit_of_colmodernvbert_is_refused(encoders):
    model = encoders["colmodernvbert"].model
    tokens, most = model.query_tokens("orders")
    assert tokens == len(encoders["colmodernvbert"].encode_query("orders"))
    assert most == model._model.config.vlm_config.text_config.max_position_embeddings
    model._model.config.vlm_config.text_config.max_position_embeddings = tokens
    try:
        assert len(encoders["colmodernvbert"].encode_query("orders")) == tokens
        with pytest.raises(InvalidInput, match=f"the model reads {tokens}"):
            encoders["colmodernvbert"].encode_query("orders and prices")
    finally:
        model._model.config.vlm_config.text_config.max_position_embeddings = most


def test_truncation_of_passages_is_logged_once(folders, caplog):
    encoder = create_encoder(settings_for("colmodernvbert", folders["colmodernvbert"]), MemoryBlobs())
    long = (Segment("where are my orders " * 600, "text", Box(0, 0, 10, 10)),)
    pages = [Observation(f"n{n}", "http://shop.test/a", "A", long) for n in range(2)]
    encoder.encode_pages(pages, {})
    encoder.encode_pages(pages, {})
    assert caplog.text.count("encode/cut_text colmodernvbert: 2 of 2 texts") == 1
    assert caplog.text.count("encode/cut_text") == 1


@pytest.fixture(scope="module")
def reader(tmp_path_factory) -> Path:
    """A model that reads: 12 tokens of a question, 20 of a page."""
    library = pytest.importorskip("sentence_transformers")
    from transformers import BertConfig, BertModel

    root = tmp_path_factory.mktemp("reader")
    tokenizer = make_tokenizer(cls_token="[CLS]", sep_token="[SEP]")
    tokenizer.model_max_length = 64
    tokenizer.save_pretrained(root / "bert")
    torch.manual_seed(0)
    sizes = {"hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 48}
    BertModel(BertConfig(vocab_size=len(tokenizer), **sizes)).save_pretrained(root / "bert")
    model = library.MultiVectorEncoder(str(root / "bert"), device="cpu")
    model[0].query_length, model[0].document_length = 12, 20
    model.save(str(root / "model"))
    return root / "model"


def test_text_model_refuses_queries_it_would_truncate_and_logs_truncated_pages(reader, caplog):
    encoder = create_encoder(EncodeSettings(encoder=f"st:{reader}", device="cpu"))
    assert encoder.reads == "text"
    words = next(n for n in range(1, 20) if encoder.model.query_tokens("x" * n)[0] == 12)
    assert len(encoder.encode_query("x" * words)) == 12
    with pytest.raises(InvalidInput, match="has 13 tokens; the model reads 12"):
        encoder.encode_query("x" * (words + 1))
    short = Observation("n1", "http://shop.test/a", "A", ())
    encoder.encode_pages([short], {})
    assert "encode/cut_text" not in caplog.text
    long = Observation("n1", "http://shop.test/a", "x" * 100, ())
    encoder.encode_pages([short, long], {})
    encoder.encode_pages([long], {})
    assert "1 of 2 texts are truncated" in caplog.text
    assert caplog.text.count("encode/cut_text") == 1


def test_model_that_pads_queries_to_a_fixed_length_refuses_longer_ones(reader, tmp_path):
    copied = Path(shutil.copytree(reader, tmp_path / "copy"))
    settings = json.loads((copied / "sentence_bert_config.json").read_text())
    expansion = {"strategy": "fixed", "length": 12, "attend": False, "token": "[SEP]"}
    write_json(copied / "sentence_bert_config.json", settings | {"query_expansion": expansion})
    encoder = create_encoder(EncodeSettings(encoder=f"st:{copied}", device="cpu"))
    assert len(encoder.encode_query("x")) == 12
    with pytest.raises(InvalidInput, match="the model reads 12"):
        encoder.encode_query("x" * 20)


def test_states_of_equal_text_share_the_content_key_of_text_encoders_only(blobs):
    bright, dark = (state(blobs, picture(80, 60, seed=seed)) for seed in (1, 2))
    assert content_key(bright, "text") == content_key(dark, "text")
    assert content_key(bright, "screenshot") != content_key(dark, "screenshot")
    unseen = state(blobs, None)
    assert content_key(unseen, "screenshot") == content_key(unseen, "text")


def test_folder_of_a_model_is_not_part_of_its_name_in_a_map(tmp_path):
    folder = tmp_path / "org" / "model"
    folder.mkdir(parents=True)
    assert public_name(f"st:{folder}") == "st:model"
    assert [public_name(name) for name in ("st:org/model", "text")] == ["st:org/model", "text"]


@pytest.mark.parametrize("kind", KINDS)
def test_fingerprint_depends_on_content_and_precision_not_on_the_folder(encoders, folders, kind, tmp_path):
    folder = folders[kind]
    copied = Path(shutil.copytree(folder, tmp_path / folder.name))
    assert create_encoder(settings_for(kind, copied)).fingerprint == encoders[kind].fingerprint
    rough = create_encoder(settings_for(kind, copied, dtype="bfloat16"))
    assert rough.fingerprint != encoders[kind].fingerprint
    change_tensors_of(copied, lambda t: t.update({name: tensor * 1.01 for name, tensor in t.items()}))
    assert create_encoder(settings_for(kind, copied)).fingerprint != encoders[kind].fingerprint


def change_tensors_of(folder: Path, change) -> None:
    change_tensors(folder / "model.safetensors", change)


DAMAGES = {
    "missing tensor": lambda f: change_tensors_of(f, lambda t: t.pop(next(k for k in t if "layers.1" in k))),
    "unknown tensor": lambda f: change_tensors_of(f, lambda t: t.update(surprise=torch.ones(2))),
    "half a file": lambda f: (f / "model.safetensors").write_bytes((f / "model.safetensors").read_bytes()[:9000]),
    "no weights": lambda f: (f / "model.safetensors").unlink(),
    "no configuration": lambda f: (f / "config.json").unlink(),
    "no tokenizer": lambda f: (f / "tokenizer.json").unlink(),
}


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("kind", KINDS)
def test_a_damaged_model_is_refused(folders, kind, damage, tmp_path):
    copied = Path(shutil.copytree(folders[kind], tmp_path / "copy"))
    DAMAGES[damage](copied)
    with pytest.raises(WeightsMissing) as caught:
        create_encoder(settings_for(kind, copied))
    assert caught.value.hint


def test_randomly_initialised_tensors_are_detected_without_the_log(folders, tmp_path):
    from transformers.utils import logging as transformers_logging

    copied = Path(shutil.copytree(folders["st"], tmp_path / "copy"))
    change_tensors_of(copied, lambda t: [t.pop(key) for key in list(t) if "embedding_proj" in key])
    verbosity = transformers_logging.get_verbosity()
    transformers_logging.set_verbosity_error()  # what TRANSFORMERS_VERBOSITY=error does
    try:
        with pytest.raises(WeightsMissing, match=r"missing_keys.*embedding_proj"):
            create_encoder(settings_for("st", copied))
    finally:
        transformers_logging.set_verbosity(verbosity)


def test_a_model_of_single_vectors_is_refused(tmp_path):
    write_json(tmp_path / "config.json", {"architectures": ["BertModel"], "model_type": "bert"})
    with pytest.raises(InvalidInput, match="not a multi-vector model"):
        create_encoder(EncodeSettings(encoder=f"st:{tmp_path}"))


def test_a_model_that_sentence_transformers_would_run_without_its_prompts_is_refused(folders):
    with pytest.raises(InvalidInput, match="prompts") as caught:
        create_encoder(EncodeSettings(encoder=f"st:{folders['colmodernvbert']}"))
    assert "--encoder colmodernvbert" in caught.value.hint


def test_missing_model_is_an_error_that_lists_the_searched_locations(monkeypatch, tmp_path):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(WeightsMissing, match="hub is switched off") as caught:
        create_encoder(EncodeSettings(encoder="st:someone/something"))
    assert "docs/encoders.md" in caught.value.hint
    with pytest.raises(WeightsMissing, match="neither a folder nor"):
        create_encoder(EncodeSettings(encoder="st:no/such/folder"))


@pytest.mark.parametrize("name", ["bert-xxl", "st:", "", "jina"])
def test_unknown_encoder_names_are_refused_before_anything_is_loaded(name):
    with pytest.raises(InvalidInput, match="There is no encoder") as caught:
        check_name(name)
    assert all(known in caught.value.hint for known in ("text", "jina-v4", "colmodernvbert", "st:NAME"))


def test_the_pixel_budget_of_a_model_with_sizes_of_its_own_cannot_be_set(folders):
    for kind in KINDS:
        with pytest.raises(InvalidInput, match="takes its sizes"):
            create_encoder(settings_for(kind, folders[kind], max_pixels=100_000))


def test_remote_code_of_a_checkpoint_is_never_run(folders, tmp_path):
    copied = Path(shutil.copytree(folders["st"], tmp_path / "copy"))
    config = json.loads((copied / "config.json").read_text())
    config |= {"auto_map": {"AutoConfig": "evil.Config", "AutoModel": "evil.Model"}, "model_type": "evil"}
    write_json(copied / "config.json", config)
    (copied / "evil.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w').close()")
    with pytest.raises(WeightsMissing):
        create_encoder(EncodeSettings(encoder=f"st:{copied}", device="cpu"))
    assert not (tmp_path / "ran").exists()


def test_out_of_memory_halves_the_batch_size_permanently():
    sizes = []

    def encode(batch):
        if len(batch) > 3:
            raise torch.OutOfMemoryError("CUDA out of memory.")
        sizes.append(len(batch))
        return [np.full((1, 2), item, np.float32) for item in batch]

    halving = OutOfMemoryBackoff[int](encode, size=16)
    assert [int(v[0, 0]) for v in halving.run(list(range(10)))] == list(range(10))
    assert halving.size == 2
    assert max(sizes) == 2


@pytest.mark.parametrize(
    ("result", "message"),
    [(np.full((2, 2), np.nan, np.float32), "not finite"), (np.empty((0, 2), np.float32), "no vectors")],
)
def test_non_finite_vectors_are_an_error(result, message):
    with pytest.raises(EncodingFailed, match=message):
        OutOfMemoryBackoff[int](lambda batch: [result for _ in batch], size=4).run([1])
