"""The text encoder with its real weights."""

import json
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file

from waygraph.core.errors import InvalidInput, WeightsMissing
from waygraph.core.settings import EncodeSettings
from waygraph.index.graph import Box, Observation, Segment
from waygraph.pipeline.encode.registry import create_encoder
from waygraph.pipeline.encode.text.encoder import PAGE_ADAPTER, QUERY_ADAPTER, fingerprint
from waygraph.pipeline.encode.text.weights import FILES, find_weights
from waygraph.pipeline.encode.text_counts import count_segments
from waygraph.serve.select.confidence import LEVELS
from waygraph.serve.select.no_match import THRESHOLDS

#: How much the company a text is embedded in may change its vector, per component.
TOLERANCE = 1e-5


@pytest.fixture(scope="module")
def encoder():
    return create_encoder(EncodeSettings())


def page(node: str, url: str, title: str, *segments: tuple[str, str]) -> Observation:
    menu = [("link", "Home"), ("link", "Cart"), ("link", "Help")]
    return Observation(
        node,
        f"http://shop.test/{url}",
        f"{title} | Shop",
        tuple(Segment(text, role, Box(0, 20 * i, 100, 20)) for i, (role, text) in enumerate([*menu, *segments])),
    )


SITE = [
    page("home", "", "Welcome", ("heading", "Lamps and chairs for every room"), ("link", "Lamps"), ("link", "Chairs")),
    page(
        "lamp",
        "products/lamp",
        "Desk lamp",
        ("heading", "Desk lamp"),
        ("text", "Warm light"),
        ("button", "Add to cart"),
    ),
    page(
        "sign-in",
        "sign-in",
        "Sign in",
        ("heading", "Sign in"),
        ("textbox", "E-mail address"),
        ("textbox", "Password"),
        ("button", "Sign in"),
        ("link", "I forgot my password"),
    ),
    page(
        "orders",
        "admin/orders",
        "Orders",
        ("heading", "Orders"),
        ("columnheader", "Customer"),
        ("columnheader", "Total"),
        ("columnheader", "Shipped on"),
        ("link", "Order 17"),
    ),
    page(
        "returns",
        "help/returns",
        "Returns",
        ("heading", "Send something back"),
        ("text", "Free within 30 days of delivery."),
    ),
    page(
        "dialog",
        "admin/orders",
        "Orders",
        ("heading", "Orders"),
        ("columnheader", "Customer"),
        ("columnheader", "Total"),
        ("columnheader", "Shipped on"),
        ("link", "Order 17"),
        ("heading", "Cancel this order?"),
        ("button", "Cancel and refund"),
    ),
]


@pytest.fixture(scope="module")
def context(encoder):
    # What a store does to it between preparing and encoding.
    return json.loads(json.dumps(encoder.prepare_site(count_segments(SITE))))


def test_bundled_weights_are_found_without_network():
    assert find_weights(allow_hub=False).source in {"cache", "package"}


def test_a_page_is_a_float32_matrix_with_a_text_and_segments_for_each_row(encoder, context):
    for observation, encoded in zip(SITE, encoder.encode_pages(SITE, context), strict=True):
        assert encoded.vectors.dtype == np.float32
        assert encoded.vectors.shape == (len(encoded.rows), encoder.dim)
        assert len(encoded.segments) == len(encoded.rows)
        assert all(0 <= i < len(observation.segments) for row in encoded.segments for i in row)


def test_row_is_the_weighted_sum_of_unit_vectors_of_text_page_and_anchor_text(encoder, context):
    from waygraph.pipeline.encode.text.composites import describe
    from waygraph.pipeline.encode.text.site_text import SiteText

    orders = replace(SITE[3], anchor_texts=("Purchases: what customers have bought",))
    described = describe(orders, SiteText.from_json(context))
    parts = encoder.page_model.embed([row.text for row in described.rows])
    whole = encoder.page_model.embed([described.context])
    names = encoder.page_model.embed([described.names])
    assert np.allclose(np.linalg.norm(parts, axis=1), 1, atol=1e-6)
    assert np.allclose(np.linalg.norm(whole, axis=1), 1, atol=1e-6)
    (encoded,) = encoder.encode_pages([orders], context)
    assert np.allclose(encoded.vectors, parts + whole + 0.2 * names, atol=1e-6)
    assert encoded.rows[-1] == "Purchases: what customers have bought"


def test_state_is_found_by_words_of_its_anchor_text(encoder, context):
    query = encoder.encode_query("how to oil wooden boards in spring")

    def rank(called: tuple[str, ...]) -> int:
        site = [replace(seen, anchor_texts=called) if seen.node_id == "orders" else seen for seen in SITE]
        scores = {
            seen.node_id: float((query @ page.vectors.T).max())
            for seen, page in zip(site, encoder.encode_pages(site, context), strict=True)
        }
        return 1 + sum(score > scores["orders"] for node, score in scores.items() if node != "orders")

    assert rank(("Wood care: boards are oiled every spring",)) == 1 < rank(())


def test_a_query_is_one_unit_row(encoder):
    query = encoder.encode_query("Where can I see what customers bought?")
    assert (query.shape, query.dtype) == ((1, 384), np.float32)
    assert np.linalg.norm(query) == pytest.approx(1, abs=1e-6)


def test_queries_are_embedded_with_the_adapter_of_the_published_model(encoder):
    factors = load_file(QUERY_ADAPTER)
    tensors = load_file(encoder.weights.folder / "model.safetensors")
    adapted = {name.rpartition(".")[0] for name in factors}
    assert adapted == {name for name, tensor in tensors.items() if name.startswith("encoder.") and tensor.ndim == 2}
    asked = "drawings that can be put on buttons"
    (query,), (plain,) = encoder.encode_query(asked), encoder.model.embed([asked])
    assert 0.7 < query @ plain < 0.99
    assert np.abs(query - encoder.model.with_adapter(QUERY_ADAPTER).embed_uncached([asked])[0]).max() < TOLERANCE


@pytest.mark.parametrize(
    ("asked", "right", "wrong"),
    [
        ("drawings that can be put on buttons", "Icons", "Text"),
        ("people I work with", "Team members", "Settings"),
        ("what was sold this month", "Sales report", "Settings"),
    ],
)
def test_with_adapters_the_right_page_leads_by_more(encoder, asked, right, wrong):
    (query,), (plain,) = encoder.encode_query(asked), encoder.model.embed([asked])
    pages, plain_pages = (model.embed([right, wrong]) for model in (encoder.page_model, encoder.model))
    assert query @ (pages[0] - pages[1]) > plain @ (plain_pages[0] - plain_pages[1])


def test_pages_are_embedded_with_the_adapter_of_the_published_model(encoder):
    adapted = {int(name.split(".")[2]) for name in load_file(PAGE_ADAPTER)}
    assert adapted == {3, 4, 5}
    texts = ["Icons", "Orders. Unpaid, paid, sent"]
    vectors = encoder.page_model.embed(texts)
    assert np.abs(vectors - encoder.model.with_adapter(PAGE_ADAPTER).embed_uncached(texts)).max() < TOLERANCE
    assert ((vectors * encoder.model.embed(texts)).sum(1) < 0.999).all()


def test_answers_of_the_default_encoder_have_confidence_and_a_threshold(encoder):
    assert encoder.fingerprint in LEVELS
    assert encoder.fingerprint in THRESHOLDS


def test_whitespace_does_not_change_a_query_and_an_empty_query_is_refused(encoder):
    assert np.array_equal(encoder.encode_query(" where is\n my cart "), encoder.encode_query("where is my cart"))
    with pytest.raises(InvalidInput):
        encoder.encode_query(" \n")


def test_queries_in_a_batch_get_the_vectors_of_single_queries(encoder):
    questions = [
        "where is my cart",
        "a much longer question about where the things that were sent back are listed",
        "lamps",
    ]
    together = encoder.encode_queries(questions)
    for question, vectors in zip(questions, together, strict=True):
        assert vectors.shape == (1, encoder.dim)
        assert np.abs(vectors - encoder.encode_query(question)).max() < TOLERANCE


def test_query_longer_than_the_model_limit_is_refused(encoder):
    with pytest.raises(InvalidInput, match="the model reads 256"):
        encoder.encode_query("where is the page about lamps " * 500)


@pytest.mark.parametrize(
    ("question", "nodes"),
    [
        ("enter my credentials to get into my account", {"sign-in"}),
        ("what is the policy for giving an article back", {"returns"}),
        ("overview of everything that customers bought", {"orders", "dialog"}),  # the list is behind the dialog, too
        ("confirm that an order should be called off and the money paid back", {"dialog"}),
        ("buy something that illuminates my table", {"lamp"}),
    ],
)
def test_paraphrased_query_finds_its_page(encoder, context, question, nodes):
    query = encoder.encode_query(question)
    scores = {
        o.node_id: float((query @ e.vectors.T).max())
        for o, e in zip(SITE, encoder.encode_pages(SITE, context), strict=True)
    }
    assert max(scores, key=scores.__getitem__) in nodes


def test_the_best_row_of_a_dialog_points_at_the_dialogs_segments(encoder, context):
    query = encoder.encode_query("cancel an order and refund the customer")
    (encoded,) = encoder.encode_pages([SITE[5]], context)
    best = int((query @ encoded.vectors.T).argmax())
    shown = {SITE[5].segments[i].text for i in encoded.segments[best]}
    assert shown & {"Cancel this order?", "Cancel and refund"}


def test_page_vectors_do_not_depend_on_the_batch(context):
    together = create_encoder(EncodeSettings()).encode_pages(SITE, context)
    alone = create_encoder(EncodeSettings(batch_size=1))
    for observation, expected in zip(SITE, together, strict=True):
        (encoded,) = alone.encode_pages([observation], context)
        assert encoded.rows == expected.rows
        assert np.abs(encoded.vectors - expected.vectors).max() < TOLERANCE


def test_equal_texts_are_embedded_once(context):
    encoder = create_encoder(EncodeSettings())
    first = encoder.encode_pages(SITE, context)
    embedded = encoder.page_model.embedded
    copies = [replace(observation, node_id=f"copy of {observation.node_id}") for observation in SITE]
    again = encoder.encode_pages(copies, context)
    assert encoder.page_model.embedded == embedded
    assert all(np.array_equal(a.vectors, b.vectors) for a, b in zip(first, again, strict=True))


def test_clearing_the_text_cache_changes_no_vector(encoder, context):
    from waygraph.pipeline.encode.text.sentence_model import SentenceModel

    model = encoder.model
    few = SentenceModel(model._token_vectors, model.dim, model._tokenizer, batch_size=4, cache_size=2)
    texts = [row for page in encoder.encode_pages(SITE, context) for row in page.rows]
    assert np.abs(few.embed(texts) - encoder.model.embed(texts)).max() < TOLERANCE
    assert len(few._cache) <= 2


def test_empty_batch_gives_no_vectors(encoder, context):
    assert encoder.encode_pages([], context) == []


def test_the_vectors_are_those_of_the_reference_implementation(encoder):
    import torch
    from transformers import AutoModel, AutoTokenizer

    folder = str(encoder.weights.folder)
    tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
    model = AutoModel.from_pretrained(folder, local_files_only=True).eval()
    text = "Orders: table with columns Customer, Total, \u201eShipped on\u201c"
    with torch.inference_mode():
        tokens = model(**tokenizer(text, return_tensors="pt")).last_hidden_state[0].mean(0).numpy()
    assert np.abs(encoder.model.embed([text])[0] - tokens / np.linalg.norm(tokens)).max() < TOLERANCE


def test_components_differ_from_those_of_transformers_by_rounding_only(encoder):
    from waygraph.pipeline.encode.text.other_models import read_any_model
    from waygraph.pipeline.encode.text.sentence_model import SentenceModel

    model = encoder.model
    forward, dim = read_any_model(encoder.weights.folder, 1)
    texts = [
        "orders",
        "where do I change the address of a customer",
        "Straße 漢字 12",
        "refund " * 300,
        "orders by month",
    ]
    for batch_size in (1, 2, 8):  # alone, and with others that are longer
        own = SentenceModel(model._token_vectors, dim, model._tokenizer, batch_size=batch_size)
        theirs = SentenceModel(forward, dim, model._tokenizer, batch_size=batch_size)
        assert np.abs(own.embed_uncached(texts) - theirs.embed_uncached(texts)).max() < 1e-6


def test_a_network_is_built_by_the_first_text_that_needs_it():
    lazy = create_encoder(EncodeSettings())
    lazy.encode_query("orders")
    built = {
        part: getattr(lazy, part)._token_vectors._session is not None
        for part in ("model", "page_model", "_query_model")
    }
    assert built == {"model": False, "page_model": False, "_query_model": True}


def test_the_published_model_is_run_without_importing_torch():
    program = """
import sys
from waygraph.pipeline.encode.registry import create_encoder
from waygraph.core.settings import EncodeSettings
create_encoder(EncodeSettings()).encode_query("orders")
print(sorted({"torch", "transformers", "sentence_transformers", "scipy", "onnx"} & sys.modules.keys()))
"""
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ran.stdout == "[]\n"


def test_model_of_another_architecture_is_run_by_transformers(encoder, tmp_path):
    from transformers import DistilBertConfig, DistilBertModel

    config = DistilBertConfig(n_layers=1, dim=8, n_heads=2, hidden_dim=16)
    DistilBertModel(config).save_pretrained(tmp_path)
    shutil.copy(encoder.weights.folder / "tokenizer.json", tmp_path)
    other = create_encoder(EncodeSettings(weights=tmp_path))
    vector = other.encode_query("orders")
    assert (other.dim, vector.shape) == (8, (1, 8))
    assert np.linalg.norm(vector) == pytest.approx(1, abs=1e-5)


def test_the_fingerprint_names_weights_tokenizer_and_dimension(encoder):
    assert create_encoder(EncodeSettings(batch_size=3)).fingerprint == encoder.fingerprint
    others = {
        fingerprint(replace(encoder.weights, model_sha256="0" * 64), encoder.dim),
        fingerprint(replace(encoder.weights, tokenizer_sha256="0" * 64), encoder.dim),
        fingerprint(encoder.weights, 128),
        fingerprint(encoder.weights, encoder.dim),
    }
    assert len(others | {encoder.fingerprint}) == 5


@pytest.fixture
def copied(tmp_path: Path, encoder) -> Path:
    for name in FILES:
        shutil.copy(encoder.weights.folder / name, tmp_path / name)
    return tmp_path


def test_a_copied_weights_folder_has_the_same_fingerprint(copied, encoder):
    assert create_encoder(EncodeSettings(weights=copied)).fingerprint == encoder.fingerprint


def test_weights_without_a_tensor_are_refused_instead_of_randomly_initialised(copied):
    from safetensors.torch import load_file, save_file

    tensors = load_file(copied / "model.safetensors")
    del tensors["encoder.layer.3.attention.self.query.weight"]
    save_file(tensors, copied / "model.safetensors")
    with pytest.raises(WeightsMissing, match=r"encoder\.layer\.3\.attention\.self\.query\.weight"):
        create_encoder(EncodeSettings(weights=copied))


def test_weights_of_another_shape_are_refused(copied):
    config = json.loads((copied / "config.json").read_text())
    (copied / "config.json").write_text(json.dumps(config | {"num_hidden_layers": 5}))
    with pytest.raises(WeightsMissing, match=r"layer\.5"):
        create_encoder(EncodeSettings(weights=copied))


@pytest.mark.parametrize("name", FILES)
def test_truncated_file_is_refused_with_the_name_of_the_folder(copied, name):
    content = (copied / name).read_bytes()
    (copied / name).write_bytes(content[: len(content) // 2])
    with pytest.raises(WeightsMissing, match=str(copied)):
        create_encoder(EncodeSettings(weights=copied))
