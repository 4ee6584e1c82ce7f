"""jina-v4 on a tiny checkpoint in the published layout: correct vectors, or an error that names the fault."""

import io
import logging
import shutil
import zlib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from transformers import Qwen2_5_VLModel
from transformers.models.qwen2_vl.image_processing_pil_qwen2_vl import Qwen2VLImageProcessorPil

from tests import tiny_jina
from tests.blobs import MemoryBlobs
from tests.tiny_jina import ADAPTER, change_json, change_tensors, make_checkpoint, one_thread, picture  # noqa: F401
from waygraph.core.errors import BadImage, EncodingFailed, InvalidInput, WeightsMissing
from waygraph.core.settings import EncodeSettings
from waygraph.index.graph import Box, Observation, Segment
from waygraph.pipeline.encode.registry import create_encoder
from waygraph.pipeline.encode.vision.jina_v4.adapter import adapted_modules, read_adapter
from waygraph.pipeline.encode.vision.jina_v4.checkpoint import read_checkpoint
from waygraph.pipeline.encode.vision.jina_v4.encoder import JinaV4Encoder
from waygraph.pipeline.encode.vision.jina_v4.inputs import (
    FRAME_TOKENS,
    Picture,
    grid_of,
    image_batch,
    patches,
    text_batch,
    token_count,
)
from waygraph.pipeline.encode.vision.jina_v4.model import JinaV4
from waygraph.pipeline.encode.vision.jina_v4.tensors import parameter_name
from waygraph.pipeline.encode.vision.patch_labels import patch_box
from waygraph.pipeline.encode.vision.screenshots import decode

CPU = torch.device("cpu")
#: Sequences of different lengths and shapes, so that batches are padded and windows are cut off at the edges.
SIZES = ((300, 200), (140, 250), (200, 200), (60, 500), (28, 28), (331, 177))


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    return make_checkpoint(tmp_path_factory.mktemp("jina") / "v4")


@pytest.fixture(scope="module")
def blobs() -> MemoryBlobs:
    return MemoryBlobs()


@pytest.fixture(scope="module")
def encoder(folder, blobs) -> JinaV4Encoder:
    return JinaV4Encoder.load(EncodeSettings(weights=folder, device="cpu", token_budget=120), blobs)


@pytest.fixture
def copied(folder, tmp_path) -> Path:
    """A copy of the checkpoint that a test may damage."""
    return Path(shutil.copytree(folder, tmp_path / "copy"))


def state(blobs: MemoryBlobs, content: bytes | None, *, title: str = "Orders") -> Observation:
    segments = (Segment("Unpaid orders", "heading", Box(0, 0, 10, 10)),)
    screenshot = "" if content is None else blobs.put(content)
    return Observation("n1", "http://shop.test/orders", title, segments, screenshot=screenshot)


def states(blobs: MemoryBlobs) -> list[Observation]:
    return [state(blobs, picture(width, height, seed=n)) for n, (width, height) in enumerate(SIZES)]


def load(folder: Path, **settings) -> JinaV4Encoder:
    return JinaV4Encoder.load(EncodeSettings(weights=folder, device="cpu", **settings), None)


def pictures(encoder: JinaV4Encoder) -> list[Picture]:
    made = []
    for n, (width, height) in enumerate(SIZES):
        grid = grid_of(width, height, encoder.checkpoint.pixels)
        shrunk = decode(picture(width, height, seed=n), "it").resize((grid.columns * 14, grid.rows * 14), 3)
        made.append(Picture(torch.from_numpy(np.array(shrunk)), grid))
    return made


class Reference:
    """The same network without our code: transformers' own forward pass and preprocessing, adapter not merged."""

    def __init__(self, folder: Path, *, adapted: bool = True) -> None:
        checkpoint = read_checkpoint(folder)
        self.model = Qwen2_5_VLModel(checkpoint.config).eval()
        tensors = {}
        for shard in sorted(folder.glob("model-*.safetensors")):
            tensors |= tiny_jina.load_file(shard)
        self.weight, self.bias = (tensors.pop(f"multi_vector_projector.{part}") for part in ("weight", "bias"))
        del tensors["lm_head.weight"]
        own = {
            key.replace("model.", "language_model.", 1) if key.startswith("model.") else key: t
            for key, t in tensors.items()
        }
        self.model.load_state_dict(own)
        factors = tiny_jina.load_file(folder / ADAPTER)
        if not adapted:
            factors = {key: torch.zeros_like(t) for key, t in factors.items()}
        scale = checkpoint.scale
        for name, module in self.model.language_model.named_modules():
            if isinstance(module, torch.nn.Linear):
                prefix = f"base_model.model.model.language_model.{name}"
                a, b = (factors[f"{prefix}.lora_{side}.retrieval.weight"] for side in "AB")
                module.register_forward_hook(lambda _, x, y, a=a, b=b: y + scale * (x[0] @ a.T) @ b.T)
        prefix = "base_model.model.multi_vector_projector"
        self.a, self.b = (factors[f"{prefix}.lora_{side}.retrieval.weight"] for side in "AB")
        self.scale = scale

    @torch.inference_mode()
    def vectors(self, ids: list[int], image: bytes | None = None) -> np.ndarray:
        kinds = {}
        tokens = torch.tensor([ids])
        if image is not None:
            size = {"shortest_edge": tiny_jina.MIN_PIXELS, "longest_edge": tiny_jina.MAX_PIXELS}
            kinds = dict(Qwen2VLImageProcessorPil(size=size)([decode(image, "it")], return_tensors="pt"))
            kinds["mm_token_type_ids"] = (tokens == self.model.config.image_token_id).int()
        hidden = self.model(input_ids=tokens, attention_mask=torch.ones_like(tokens), **kinds).last_hidden_state[0]
        projected = hidden @ self.weight.T + self.bias + self.scale * (hidden @ self.a.T) @ self.b.T
        return torch.nn.functional.normalize(projected, dim=-1).numpy()


def cosines(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return (a * b).sum(1) / np.linalg.norm(a, axis=1) / np.linalg.norm(b, axis=1)


def test_pages_equal_those_of_transformers_with_the_adapter_beside_the_weights(encoder, folder, blobs):
    reference = Reference(folder)
    for page, seen, size in zip(encoder.encode_pages(states(blobs), {}), states(blobs), SIZES, strict=True):
        if size == (60, 500):
            continue  # encoded in tiles
        ids = encoder.prompts.image(grid_of(*size, encoder.checkpoint.pixels), 2)
        expected = reference.vectors(ids, blobs[seen.screenshot])
        assert page.vectors.shape == expected.shape
        assert cosines(page.vectors, expected).min() > 0.9999


def test_queries_equal_those_of_transformers_with_the_adapter_beside_the_weights(encoder, folder):
    reference = Reference(folder)
    question = "where are my orders"
    expected = reference.vectors(encoder.prompts.text("Query: " + question))
    assert cosines(encoder.encode_query(question), expected).min() > 0.9999


def test_the_adapter_makes_a_difference(encoder, folder):
    ids = encoder.prompts.text("Query: where are my orders")
    plain = Reference(folder, adapted=False).vectors(ids)
    assert cosines(encoder.encode_query("where are my orders"), plain).max() < 0.999


def test_every_linear_layer_and_the_projector_have_an_update(folder):
    checkpoint = read_checkpoint(folder)
    assert set(read_adapter(checkpoint)) == adapted_modules(checkpoint.layers)
    assert len(adapted_modules(36)) == 252 + 1


def test_the_true_shapes_are_those_of_the_published_model():
    from bench.encode import true_shape

    shape = true_shape()
    with torch.device("meta"):
        model = JinaV4(shape.config, shape.dim, None, torch.bfloat16)
    sizes = {name: parameter.numel() for name, parameter in model.named_parameters()}
    assert sum(n for name, n in sizes.items() if ".visual." in name) == pytest.approx(0.67e9, rel=0.01)
    assert sum(n for name, n in sizes.items() if ".layers." in name) == pytest.approx(2.77e9, rel=0.01)
    assert sum(1 for name in adapted_modules(36) if f"backbone.{name}.weight" in sizes) == 252
    assert (sizes["projector.weight"], sizes["projector.bias"]) == (2048 * 128, 128)


def test_patches_equal_those_of_transformers(encoder):
    rules = encoder.checkpoint.pixels
    size = {"shortest_edge": rules.min_pixels, "longest_edge": rules.max_pixels}
    images = [decode(picture(w, h, seed=n), "it") for n, (w, h) in enumerate(SIZES)]
    expected = Qwen2VLImageProcessorPil(size=size)(images, return_tensors="pt")
    ours = pictures(encoder)
    assert [[1, p.grid.rows, p.grid.columns] for p in ours] == expected["image_grid_thw"].tolist()
    assert (patches(ours, rules, CPU) - expected["pixel_values"]).abs().max() < 1e-5


@pytest.mark.parametrize("n", range(50))
def test_an_image_has_a_vector_for_each_token_and_eleven_more(encoder, blobs, n):
    random = np.random.default_rng(n)
    width, height = int(random.integers(1, 900)), int(random.integers(1, 900))
    if height > 3 * width:
        width, height = height, width
    if width > 200 * height:
        height = 5
    (page,) = encoder.encode_pages([state(blobs, picture(width, height, seed=n))], {})
    processor = Qwen2VLImageProcessorPil(
        size={"shortest_edge": tiny_jina.MIN_PIXELS, "longest_edge": tiny_jina.MAX_PIXELS}
    )
    tokens = processor.get_number_of_image_patches(height, width) // 4
    assert page.vectors.shape == (tokens + 11, tiny_jina.DIM)
    assert len(page.rows) == len(page.segments) == tokens + 11
    assert sum(patch_box(row) is not None for row in page.rows) == tokens


def test_the_published_budget_gives_746_vectors_for_a_viewport(encoder):
    rules = replace(encoder.checkpoint.pixels, min_pixels=3136, max_pixels=602_112)
    counts = {size: token_count(grid_of(*size, rules), 2) for size in ((1280, 800), (1024, 768), (1280, 720))}
    assert all(700 < count <= 768 + FRAME_TOKENS for count in counts.values()), counts


def test_a_padded_batch_equals_batches_of_one(folder, blobs):
    together = JinaV4Encoder.load(EncodeSettings(weights=folder, device="cpu", token_budget=10_000), blobs)
    alone = JinaV4Encoder.load(EncodeSettings(weights=folder, device="cpu", token_budget=1), blobs)
    pages = zip(together.encode_pages(states(blobs), {}), alone.encode_pages(states(blobs), {}), strict=True)
    assert all(np.abs(a.vectors - b.vectors).max() < 1e-5 for a, b in pages)
    questions = ["orders", "where are my orders and prices", "x y z"]
    for a, b in zip(together.encode_queries(questions), map(alone.encode_query, questions), strict=True):
        assert np.abs(a - b).max() < 1e-5


def test_mixed_shapes_in_one_padded_batch_equal_batches_of_one(encoder):
    all_of_them = pictures(encoder)
    with torch.inference_mode():
        together = encoder.model(image_batch(all_of_them, encoder.prompts, encoder.model.backbone))
        for row, one in zip(together, all_of_them, strict=True):
            alone = encoder.model(image_batch([one], encoder.prompts, encoder.model.backbone))[0]
            assert (row[: len(alone)] - alone).abs().max() < 1e-5


def test_positions_are_two_dimensional_within_an_image_and_matter(encoder):
    batch = image_batch(pictures(encoder)[:1], encoder.prompts, encoder.model.backbone)
    flat = replace(batch, positions=text_batch([batch.ids[0].tolist()]).positions)
    assert batch.positions[1:, 0, 4:-7].unique(dim=1).shape[1] == batch.ids.shape[1] - 11
    with torch.inference_mode():
        assert (encoder.model(batch) - encoder.model(flat)).abs().max() > 0.01


def test_vectors_have_unit_length(encoder, blobs):
    for page in encoder.encode_pages(states(blobs), {}):
        assert page.vectors.dtype == np.float32
        assert np.abs(np.linalg.norm(page.vectors, axis=1) - 1).max() < 1e-5


def test_bfloat16_is_close_to_float32(encoder, folder, blobs):
    rough = JinaV4Encoder.load(EncodeSettings(weights=folder, device="cpu", dtype="bfloat16"), blobs)
    for a, b in zip(encoder.encode_pages(states(blobs), {}), rough.encode_pages(states(blobs), {}), strict=True):
        assert cosines(a.vectors, b.vectors).mean() > 0.99
    assert rough.fingerprint != encoder.fingerprint


def test_names_of_special_tokens_in_a_query_are_plain_text(encoder):
    ids = encoder.prompts.plain("Query: <|image_pad|> <|im_end|>orders")
    assert not set(ids) & {encoder.prompts.text(token)[0] for token in tiny_jina.SPECIAL}


def test_the_licence_is_shown_when_the_encoder_is_loaded(folder, caplog):
    with caplog.at_level(logging.WARNING):
        load(folder)
    assert "non-commercial use only" in caplog.text


# Fingerprints


def test_equal_checkpoints_have_equal_fingerprints(encoder, copied):
    assert load(copied).fingerprint == encoder.fingerprint


@pytest.mark.parametrize("settings", [{"max_pixels": 28 * 28 * 12}, {"dtype": "bfloat16"}], ids=str)
def test_every_setting_that_changes_vectors_changes_the_fingerprint(encoder, folder, settings):
    assert load(folder, **settings).fingerprint != encoder.fingerprint


def test_other_weights_have_another_fingerprint(encoder, copied):
    change_tensors(copied / ADAPTER, lambda t: t.update({key: 1.01 * tensor for key, tensor in t.items()}))
    assert load(copied).fingerprint != encoder.fingerprint


def test_the_recipe_is_pinned_with_the_site(encoder):
    context = encoder.prepare_site(None)
    assert {"revision", "max_pixels", "dtype", "pooling", "prompts"} <= context["recipe"].keys()


def test_the_pixel_budget_of_the_checkpoint_is_used_and_nothing_else(copied, blobs):
    change_json(copied / "preprocessor_config.json", lambda c: c.update(max_pixels=28 * 28 * 6, min_pixels=28 * 28))
    small = JinaV4Encoder.load(EncodeSettings(weights=copied, device="cpu"), blobs)
    (page,) = small.encode_pages([state(blobs, picture(640, 480))], {})
    assert len(page.rows) == 2 * 2 + 11  # 2 x 3 would not keep the shape


# Damaged checkpoints

ADAPTER_CONFIG, PREPROCESSOR = "adapters/adapter_config.json", "preprocessor_config.json"
SHARD, OTHER = "model-00002-of-00002.safetensors", "model-00001-of-00002.safetensors"


def without(*keys):
    return lambda content: [content.pop(key) for key in keys]


def rename(tensors, old, new):
    tensors[new] = tensors.pop(old)


DAMAGES = {
    "no config": (lambda f: (f / "config.json").unlink(), "config.json is missing"),
    "config cut off": (lambda f: (f / "config.json").write_text('{"hidden'), "cannot be read"),
    "no tokenizer": (lambda f: (f / "tokenizer.json").unlink(), "tokenizer.json is missing"),
    "no preprocessor": (lambda f: (f / "preprocessor_config.json").unlink(), "preprocessor_config.json is missing"),
    "no adapter": (lambda f: (f / ADAPTER).unlink(), "is missing"),
    "no shard": (lambda f: (f / SHARD).unlink(), "is missing"),
    "half a shard": (lambda f: (f / SHARD).write_bytes((f / SHARD).read_bytes()[:-1000]), "cannot be read"),
    "half an adapter": (lambda f: (f / ADAPTER).write_bytes((f / ADAPTER).read_bytes()[:5000]), "cannot be read"),
    "empty shard": (lambda f: (f / SHARD).write_bytes(b""), "cannot be read"),
    "no budget": (
        lambda f: change_json(f / "preprocessor_config.json", without("min_pixels", "max_pixels")),
        "no pixel budget",
    ),
    "other patches": (
        lambda f: change_json(f / "preprocessor_config.json", lambda c: c.update(patch_size=16)),
        "disagree",
    ),
    "no rotary base": (lambda f: change_json(f / "config.json", without("rope_theta")), "rope_theta"),
    "no sections": (
        lambda f: change_json(f / "config.json", lambda c: c["rope_scaling"].pop("mrope_section")),
        "mrope",
    ),
    "other rotary": (
        lambda f: change_json(f / "config.json", lambda c: c["rope_scaling"].update(type="yarn")),
        "rotary",
    ),
    "two values": (
        lambda f: change_json(f / "config.json", lambda c: c.update(text_config={"hidden_size": 128})),
        "two values of 'hidden_size'",
    ),
    "dora": (
        lambda f: change_json(f / "adapters/adapter_config.json", lambda c: c.update(use_dora=True)),
        "not supported",
    ),
    "no rank": (lambda f: change_json(f / "adapters/adapter_config.json", without("r")), "no 'r'"),
    "other rank": (lambda f: change_json(f / "adapters/adapter_config.json", lambda c: c.update(r=8)), "not rank 8"),
    "rank 0": (lambda f: change_json(f / ADAPTER_CONFIG, lambda c: c.update(r=0)), "'r' of 0"),
    "scale as text": (lambda f: change_json(f / ADAPTER_CONFIG, lambda c: c.update(lora_alpha="32")), "'lora_alpha'"),
    "budget as text": (lambda f: change_json(f / PREPROCESSOR, lambda c: c.update(max_pixels="602112")), "budget"),
    "size no object": (lambda f: change_json(f / PREPROCESSOR, lambda c: c.update(size=[1])), "'size'"),
    "mean as text": (lambda f: change_json(f / PREPROCESSOR, lambda c: c.update(image_mean=["a"] * 3)), "normalises"),
    "patch as text": (lambda f: change_json(f / PREPROCESSOR, lambda c: c.update(patch_size="14")), "'patch_size'"),
    "factor as text": (lambda f: change_json(f / PREPROCESSOR, lambda c: c.update(rescale_factor="x")), "rescale"),
    "not normalised": (lambda f: change_json(f / PREPROCESSOR, lambda c: c.update(do_normalize=False)), "do_normalize"),
    "empty index": (
        lambda f: change_json(f / "model.safetensors.index.json", lambda c: c.update(weight_map=[])),
        "names no files",
    ),
    "dimension as text": (
        lambda f: change_json(f / "config.json", lambda c: c.update(multi_vector_projector_dim="16")),
        "'multi_vector_projector_dim'",
    ),
    "layers as text": (
        lambda f: change_json(f / "config.json", lambda c: c.update(num_hidden_layers="3")),
        "config.json",
    ),
    "rotary no object": (
        lambda f: change_json(f / "config.json", lambda c: c.update(rope_scaling="mrope")),
        "config.json",
    ),
    "no retrieval task": (
        lambda f: change_tensors(f / ADAPTER, lambda t: [t.pop(k) for k in list(t) if ".retrieval." in k]),
        "not 'retrieval'",
    ),
    "adapter lacks one": (
        lambda f: change_tensors(
            f / ADAPTER,
            without("base_model.model.model.language_model.layers.1.mlp.up_proj.lora_B.retrieval.weight"),
        ),
        "lacks 1 of its tensors",
    ),
    "adapter lacks the projector": (
        lambda f: change_tensors(
            f / ADAPTER, without("base_model.model.multi_vector_projector.lora_A.retrieval.weight")
        ),
        "projector A",
    ),
    "adapter of a deeper model": (
        lambda f: change_tensors(
            f / ADAPTER,
            lambda t: t.update(
                {
                    "base_model.model.model.language_model.layers.9.mlp.up_proj.lora_A.retrieval.weight": torch.ones(
                        4, 64
                    )
                }
            ),
        ),
        "has too many:",
    ),
    "adapter of the vision tower": (
        lambda f: change_tensors(
            f / ADAPTER,
            lambda t: t.update(
                {"base_model.model.visual.blocks.0.attn.qkv.lora_A.retrieval.weight": torch.ones(4, 40)}
            ),
        ),
        "unknown tensors",
    ),
    "renamed tensor": (
        lambda f: change_tensors(f / SHARD, lambda t: rename(t, "model.embed_tokens.weight", "model.embed.weight")),
        "unknown tensors",
    ),
    "missing tensor": (
        lambda f: change_tensors(f / SHARD, without("model.embed_tokens.weight")),
        "tensors are missing",
    ),
    "other shape": (
        lambda f: change_tensors(f / SHARD, lambda t: t.update({"model.embed_tokens.weight": torch.ones(20, 64)})),
        "has shape (20, 64)",
    ),
    "tensor twice": (
        lambda f: change_tensors(f / OTHER, lambda t: t.update({"model.embed_tokens.weight": torch.ones(420, 64)})),
        "two shards hold",
    ),
    "weight not finite": (
        lambda f: change_tensors(f / SHARD, lambda t: t["model.embed_tokens.weight"][3].fill_(float("nan"))),
        "not finite",
    ),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_checkpoint_is_refused_with_its_fault(copied, damage):
    break_it, message = DAMAGES[damage]
    break_it(copied)
    with pytest.raises(WeightsMissing) as caught:
        load(copied)
    assert message in caught.value.message
    assert caught.value.hint


NEEDED = ("hidden_size", "num_hidden_layers", "num_key_value_heads", "rms_norm_eps", "image_token_id", "vision_config")


@pytest.mark.parametrize("key", [*NEEDED, "multi_vector_projector_dim"])
def test_missing_configuration_value_is_refused_instead_of_defaulted(copied, key):
    change_json(copied / "config.json", without(key))
    with pytest.raises(WeightsMissing, match=r"config\.json"):
        load(copied)


@pytest.mark.parametrize("key", ["depth", "window_size", "fullatt_block_indexes", "patch_size"])
def test_missing_vision_configuration_value_is_refused_instead_of_defaulted(copied, key):
    change_json(copied / "config.json", lambda c: c["vision_config"].pop(key))
    with pytest.raises(WeightsMissing, match=key):
        load(copied)


def test_parameters_in_a_nested_text_configuration_are_the_same_checkpoint(encoder, copied):
    def nest(config):
        vision = config.pop("vision_config")
        kept = (
            "model_type",
            "image_token_id",
            "vision_start_token_id",
            "vision_end_token_id",
            "multi_vector_projector_dim",
        )
        text = {key: config.pop(key) for key in list(config) if key not in kept}
        config.update(text_config=text, vision_config=vision)

    change_json(copied / "config.json", nest)
    assert np.array_equal(load(copied).encode_query("orders"), encoder.encode_query("orders"))


def test_tokenizer_with_other_image_tokens_is_refused(copied):
    from tokenizers import Tokenizer, models

    file = copied / "tokenizer.json"
    tokenizer = Tokenizer.from_file(str(file))
    added = tokenizer.get_added_tokens_decoder()
    letters = {chr(code): code for code in range(256)}
    other = Tokenizer(models.WordLevel(letters | {token.content: i for i, token in added.items()}, unk_token="a"))
    other.add_special_tokens(list(added.values()))
    other.save(str(file))
    with pytest.raises(WeightsMissing, match="frames an image by"):
        load(copied)


def test_missing_checkpoint_error_names_the_command_to_run(tmp_path, monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    with pytest.raises(WeightsMissing) as caught:
        create_encoder(EncodeSettings(encoder="jina-v4"))
    assert "hf download jinaai/jina-embeddings-v4 --revision" in caught.value.hint


def test_names_of_parameters_are_the_published_ones():
    assert parameter_name("lm_head.weight") is None
    assert parameter_name("model.norm.weight") == "backbone.language_model.norm.weight"
    assert parameter_name("multi_vector_projector.bias") == "projector.bias"


# Bad input


def test_a_state_without_a_screenshot_is_encoded_by_its_text_and_that_is_logged(encoder, blobs, caplog):
    (page,) = encoder.encode_pages([state(blobs, None)], {})
    with torch.inference_mode():
        expected = encoder.model(text_batch([encoder.prompts.text("Passage: Orders Unpaid orders")]))[0].numpy()
    assert np.abs(page.vectors - expected).max() < 1e-5
    assert set(page.rows) == {"Orders"}
    assert "encode/no_screenshot n1" in caplog.text


def test_pages_with_and_without_screenshots_keep_their_order(encoder, blobs):
    mixed = [state(blobs, picture(80, 60)), state(blobs, None), state(blobs, picture(300, 200, seed=3))]
    together = encoder.encode_pages(mixed, {})
    for page, one in zip(together, mixed, strict=True):
        (alone,) = encoder.encode_pages([one], {})
        assert page.rows == alone.rows
        assert np.abs(page.vectors - alone.vectors).max() < 1e-5


BAD = {
    "empty": b"",
    "text": b"<html>not an image</html>",
    "cut off": picture(300, 200)[:-200],
    "cut off JPEG": picture(300, 200, form="JPEG")[:-900],
    "header alone": picture(300, 200)[:40],
    "GIF": picture(30, 20, form="GIF"),
}


@pytest.mark.parametrize("kind", BAD)
def test_a_damaged_screenshot_is_an_error_that_names_the_page(encoder, blobs, kind):
    with pytest.raises(BadImage, match=r"http://shop\.test/orders") as caught:
        encoder.encode_pages([state(blobs, picture(80, 60)), state(blobs, BAD[kind])], {})
    assert caught.value.hint
    assert len(encoder.encode_pages([state(blobs, picture(80, 60))], {})) == 1


def test_one_pixel_is_a_page(encoder, blobs):
    (page,) = encoder.encode_pages([state(blobs, picture(1, 1))], {})
    assert np.isfinite(page.vectors).all()


def test_image_with_an_extreme_aspect_ratio_is_an_error(encoder, blobs):
    with pytest.raises(BadImage, match="too thin"):
        encoder.encode_pages([state(blobs, picture(900, 2))], {})


def test_very_tall_page_is_encoded_in_tiles_from_the_top_and_the_rest_is_logged(encoder, blobs, caplog):
    (page,) = encoder.encode_pages([state(blobs, picture(64, 5000))], {})
    boxes = [box for row in page.rows if (box := patch_box(row))]
    assert max(box.y + box.height for box in boxes) == 8 * 128
    assert all(box.x >= 0 and box.x + box.width <= 64 for box in boxes)
    assert "the lowest 3976 of 5000 rows" in caplog.text


def test_a_page_of_a_hundred_thousand_rows_is_encoded_from_its_top(encoder, blobs, caplog):
    written = io.BytesIO()
    Image.new("L", (1280, 100_000), 200).save(written, "PNG")
    (page,) = encoder.encode_pages([state(blobs, written.getvalue())], {})
    boxes = [box for row in page.rows if (box := patch_box(row))]
    assert max(box.y + box.height for box in boxes) == 8 * 2560
    assert "the lowest 79520 of 100000 rows" in caplog.text


def test_too_large_image_is_refused_by_its_header(encoder, blobs):
    header = bytearray(picture(16, 16))
    header[16:24] = (60_000).to_bytes(4, "big") * 2
    header[29:33] = zlib.crc32(header[12:29]).to_bytes(4, "big")
    with pytest.raises(BadImage, match="more than 150,000,000 pixels"):
        encoder.encode_pages([state(blobs, bytes(header))], {})


def test_tiles_of_a_page_equal_pages_of_their_own(encoder, blobs):
    whole = decode(picture(60, 500), "it")
    (page,) = encoder.encode_pages([state(blobs, picture(60, 500))], {})
    vectors = []
    for top in range(0, 500, 100):
        written = io.BytesIO()
        whole.crop((0, top, 60, top + 100)).save(written, "PNG")
        (tile,) = encoder.encode_pages([state(blobs, written.getvalue())], {})
        vectors.append(tile.vectors)
    assert np.abs(page.vectors - np.concatenate(vectors)).max() < 1e-5


def test_transparent_parts_are_white(encoder, blobs):
    pages = []
    for mode, ground in (("RGB", "white"), ("RGBA", (255, 0, 0, 0))):
        written = io.BytesIO()
        Image.new(mode, (80, 60), ground).save(written, "PNG")
        pages += encoder.encode_pages([state(blobs, written.getvalue())], {})
    assert np.array_equal(pages[0].vectors, pages[1].vectors)


@pytest.mark.parametrize(
    ("question", "message"),
    [(" \n", "empty"), ("orders " * 3000, "the model reads 2048"), ("caf\udce9", "lone surrogates")],
)
def test_query_that_would_be_truncated_is_refused(encoder, question, message):
    with pytest.raises(InvalidInput, match=message):
        encoder.encode_query(question)


def test_vectors_that_are_not_finite_are_an_error(folder, blobs):
    broken = JinaV4Encoder.load(EncodeSettings(weights=folder, device="cpu"), blobs)
    with torch.no_grad():
        broken.model.backbone.language_model.norm.weight.fill_(float("nan"))
    with pytest.raises(EncodingFailed, match="not finite"):
        broken.encode_pages(states(blobs), {})
    with pytest.raises(EncodingFailed, match="not finite"):
        broken.encode_query("orders")


def test_screenshots_without_a_blob_reader_are_an_error(folder, blobs):
    with pytest.raises(InvalidInput, match="none were given"):
        load(folder).encode_pages(states(blobs), {})


def test_empty_input_gives_no_vectors(encoder):
    assert encoder.encode_pages([], {}) == []
    assert encoder.encode_queries([]) == []


def test_missing_device_is_an_error(folder):
    with pytest.raises(InvalidInput, match="cuda:77"):
        JinaV4Encoder.load(EncodeSettings(weights=folder, device="cuda:77"), None)


# Another implementation


def test_vectors_equal_those_of_colpali_engine(encoder, folder, blobs):
    """Not installed by default: its requirement torchvision exists for CUDA builds of torch only."""
    colqwen = pytest.importorskip("colpali_engine.models", exc_type=ImportError)
    checkpoint = read_checkpoint(folder)
    merged = JinaV4.with_updates(checkpoint, read_adapter(checkpoint), device=CPU, dtype=torch.float32)
    model = colqwen.ColQwen2_5(checkpoint.config).eval()
    model.custom_text_proj = torch.nn.Linear(tiny_jina.HIDDEN, tiny_jina.DIM)
    names = {"projector.": "custom_text_proj.", "backbone.": ""}
    own = {}
    for name, parameter in merged.state_dict().items():
        prefix = next(prefix for prefix in names if name.startswith(prefix))
        own[names[prefix] + name.removeprefix(prefix)] = parameter
    model.load_state_dict(own)
    for seen, size in zip(states(blobs), SIZES, strict=True):
        if size == (60, 500):
            continue
        ids = torch.tensor([encoder.prompts.image(grid_of(*size, checkpoint.pixels), 2)])
        budget = {"shortest_edge": tiny_jina.MIN_PIXELS, "longest_edge": tiny_jina.MAX_PIXELS}
        inputs = Qwen2VLImageProcessorPil(size=budget)([decode(blobs[seen.screenshot], "it")], return_tensors="pt")
        with torch.inference_mode():
            expected = model(
                input_ids=ids,
                attention_mask=torch.ones_like(ids),
                pixel_values=inputs["pixel_values"].unsqueeze(0),
                image_grid_thw=inputs["image_grid_thw"],
                mm_token_type_ids=(ids == checkpoint.config.image_token_id).int(),
            )[0].numpy()
        (page,) = encoder.encode_pages([seen], {})
        assert cosines(page.vectors, expected).min() > 0.9999
