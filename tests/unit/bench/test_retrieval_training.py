"""Training of a sentence model: pairs of documentation packages, batches, the loss, and a run in parts."""

import argparse
import doctest
import json
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers

from bench.retrieval.systems import maxsim
from bench.retrieval.training import adapter, batches, documents, pairs, settings_files, train
from bench.retrieval.training.applications import read_applications
from bench.retrieval.training.batches import Batch, plan, read_pairs
from bench.retrieval.training.documents import read_document
from bench.retrieval.training.pairs import Package, Page, Query, read_package
from bench.retrieval.training.train import Student, loss_of, scored
from waygraph.index.catalog.lexical import LexicalIndex
from waygraph.pipeline.encode.text.encoder import TextEncoder
from waygraph.pipeline.encode.text.sentence_model import SentenceModel
from waygraph.pipeline.encode.text.transformer import Bert
from waygraph.pipeline.encode.text.weights import find_weights
from waygraph.pipeline.encode.text_counts import count_segments

LONG = "Members of a group share its permissions, and a member of several groups has all of theirs at once."
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
WORDS = [*SPECIAL, "users", "groups", "keys", "roles", "logs", "mails", "add", "remove", "show", "change"]


@pytest.fixture
def package(tmp_path: Path) -> Package:
    files = {
        "usr/share/doc/x/html/index.html": "<title>Manual - X</title><h1>Manual</h1><h2>Accounts</h2>"
        "<p>People log in by <a href='users.html#new'>adding accounts</a> of their own.</p>"
        "<a href='missing.html'>gone</a> <a href='https://example.org/users.html'>elsewhere</a>",
        "usr/share/doc/x/html/users.html": "<title>Users - X</title><meta name=description content='Who may log in.'>"
        f"<h1>Users</h1><h2>Groups</h2><p>{LONG}</p><script>hidden()</script><a href='index.html'>Up</a>",
        "usr/share/doc/x/html/de/users.html": "<title>Benutzer</title><h1>Benutzer</h1>",
        "usr/share/doc/x/html/users.fr.html": "<title>Utilisateurs</title><h1>Utilisateurs</h1>",
        "usr/share/applications/x.desktop": "[Desktop Entry]\nName=X\nComment=Manage accounts\n",
        "usr/share/glib-2.0/schemas/x.gschema.xml": "<schemalist><schema><key><summary>Idle</summary>"
        "<description>Minutes until the screen locks.</description></key></schema></schemalist>",
    }
    for name, content in files.items():
        file = tmp_path / "x" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content)
    return read_package(tmp_path / "x")


def queries_of(package: Package, kind: str) -> dict[str, Page]:
    return {query.text: package.pages[query.page] for query in package.queries if query.kind == kind}


def test_links_ask_for_the_page_that_they_lead_to(package):
    asked = queries_of(package, "anchor")
    assert set(asked) == {"adding accounts", "adding accounts, Accounts", "Up", "Up, Groups"}
    assert asked["adding accounts"].context.startswith("Users, X. users. Users. Groups.")
    sentence = queries_of(package, "sentence")
    assert sentence["People log in by adding accounts of their own."] == asked["adding accounts"]


def test_summaries_headings_and_settings_ask_for_what_they_describe(package):
    assert set(queries_of(package, "description")) == {"Who may log in."}
    assert queries_of(package, "passage")["Groups, Users, X"] == Page(f"{LONG} Up", ())
    assert {ask: page.context for ask, page in queries_of(package, "setting").items()} == {
        "Manage accounts": "X",
        "Minutes until the screen locks.": "Idle",
    }


def test_scripts_and_translations_are_left_out(package):
    texts = " ".join(text for page in package.pages for text in (page.context, *page.rows))
    assert "hidden" not in texts
    assert "Benutzer" not in texts
    assert "Utilisateurs" not in texts


def test_a_mallard_page_has_its_summary_apart_and_links_by_name():
    page = read_document(
        "C/lock.page",
        "<page><info><credit><name>Ann</name></credit><link type='guide' xref='privacy'/><desc>Keep others out.</desc>"
        "</info><title>Lock the screen</title><p>Press <gui>Lock</gui>, see <link xref='power#off'>power</link>.</p>",
    )
    assert (page.title, page.description) == ("Lock the screen", "Keep others out.")
    assert [text for text, _ in page.segments] == ["Lock the screen", "Press Lock, see", "power", "."]
    assert [(link.target, link.text) for link in page.links] == [("C/power.page", "power")]


def some_package(name: str = "x") -> Package:
    pages = [
        Page(f"page {i} {word}", (f"row {i}", f"other {i}", f"last {i}")) for i in range(20) for word in ("a", "b")
    ]
    queries = [Query(f"query {i} {j}", i, "anchor") for i in range(40) for j in range(3)]
    return Package(name, tuple(pages), tuple(queries))


def test_a_batch_has_pages_of_one_package_once_each_with_queries_about_them():
    found = plan([some_package()], size=8, rows=2, most=10, seed=1)
    assert len(found) == 5
    assert found == plan([some_package()], size=8, rows=2, most=10, seed=1)
    assert len({page.context for batch in found for page in batch.pages}) == 40
    for batch in found:
        assert all(len(page.rows) == 2 for page in batch.pages)
        for query in batch.queries:
            assert batch.pages[query.page].context.split()[1] == str(int(query.text.split()[1]) // 2)


def test_half_of_a_batch_are_the_pages_most_like_one_of_them():
    words = [*["red wine"] * 4, *["blue sky"] * 4]
    alike = Package(
        "x",
        tuple(Page(f"{text} {i}", ()) for i, text in enumerate(words)),
        tuple(Query(f"q{i}", i, "anchor") for i in range(8)),
    )
    (batch,) = plan([alike], size=8, rows=1, most=1, seed=0)
    assert len({page.context.split()[0] for page in batch.pages[:4]}) == 1


def test_pairs_are_read_as_they_were_written(tmp_path, package, monkeypatch, capsys):
    monkeypatch.setattr(pairs, "MIN_QUERIES", 1)
    monkeypatch.setattr("sys.argv", ["pairs", str(tmp_path), "--out", str(tmp_path / "out")])
    pairs.main()
    assert read_pairs(tmp_path / "out") == [package]
    assert capsys.readouterr().out.splitlines()[-1] == f"{len(package.queries)} pairs"


def test_a_page_scores_its_context_and_its_best_row_and_without_rows_its_context_twice():
    vectors = {"q": [1.0, 0.0], "c": [0.6, 0.8], "r": [0.0, 1.0], "s": [0.8, 0.6], "d": [1.0, 0.0]}
    batch = Batch((Page("c", ("r", "s")), Page("d", ())), (Query("q", 0, "anchor"),))
    found = scored(batch, torch.tensor([vectors[text] for text in train.texts_of([batch])]))
    assert found.tolist() == [pytest.approx([0.7, 1.0])]


def test_the_loss_is_least_where_the_ranking_is_the_teachers_and_the_right_page_is_first():
    teacher, right = torch.tensor([[0.9, 0.2], [0.3, 0.8]]), torch.tensor([0, 1])
    assert loss_of(teacher, teacher, right) < loss_of(teacher.flip(1), teacher, right)
    assert loss_of(teacher, teacher, right) < loss_of(teacher, teacher, right.flip(0))


@pytest.fixture
def weights(tmp_path: Path) -> Path:
    """Return the folder of a tiny BERT."""
    folder = tmp_path / "tiny"
    folder.mkdir()
    sizes = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
    config = {
        "model_type": "bert",
        "vocab_size": len(WORDS),
        "max_position_embeddings": 64,
        "type_vocab_size": 2,
        **sizes,
    }
    (folder / "config.json").write_text(json.dumps(config))
    tokenizer = Tokenizer(models.WordPiece({word: at for at, word in enumerate(WORDS)}, unk_token="[UNK]"))
    tokenizer.normalizer, tokenizer.pre_tokenizer = normalizers.Lowercase(), pre_tokenizers.Whitespace()
    tokenizer.save(str(folder / "tokenizer.json"))
    torch.manual_seed(0)
    tensors = {name: torch.randn(shape) * 0.5 for name, shape in Bert._shapes(config).items()}
    train.save_file(tensors, folder / "model.safetensors")
    return folder


def fixed_vectors(texts: Sequence[str]) -> torch.Tensor:
    rows = [torch.randn(8, generator=torch.Generator().manual_seed(sum(text.encode()))) for text in texts]
    return torch.nn.functional.normalize(torch.stack(rows), dim=1)


SHORT = Batch(
    (Page("add users", ("show groups",)), Page("remove keys", ("change roles", "show logs"))),
    (Query("users", 0, "anchor"), Query("keys", 1, "anchor")),
)


def test_training_in_parts_is_training_in_one_go_and_keeps_word_embeddings(tmp_path, weights, monkeypatch):
    found = find_weights(weights)
    whole = Student(found)
    before = {name: tensor.detach().clone() for name, tensor in whole.tensors.items()}
    plan_of_four = [SHORT] * 4
    never = time.monotonic() + 1000

    assert train.train(whole, fixed_vectors, fixed_vectors, plan_of_four, state=tmp_path / "whole.pt", until=never)

    clock = iter([0.0, 0.0, 2.0])
    monkeypatch.setattr(train.time, "monotonic", lambda: next(clock, 0.0))
    state = tmp_path / "parts.pt"
    assert not train.train(Student(found), fixed_vectors, fixed_vectors, plan_of_four, state=state, until=1.0)
    resumed = Student(found)
    assert train.train(resumed, fixed_vectors, fixed_vectors, plan_of_four, state=state, until=1.0)

    for name, tensor in whole.tensors.items():
        assert torch.equal(tensor, resumed.tensors[name]), name
        same = torch.equal(tensor.detach(), before[name])
        assert same == ("word_embeddings" in name), name


def test_written_weights_work_as_weights_of_the_encoder(tmp_path, weights):
    student = Student(find_weights(weights))
    student.write(tmp_path / "written", weights)
    kept = train.remembered(find_weights(tmp_path / "written"), tmp_path / "vectors.npz")
    texts = ["add users", "show logs", "keys"]
    assert torch.from_numpy(kept.embed(texts)).sub(student.embed(texts)).abs().max() < 0.05
    assert load_file(tmp_path / "written" / "model.safetensors").keys() == student.tensors.keys()


INVENTED = {
    "app": "accounts of an invented firm",
    "nav": ["Home"],
    "pages": [
        {"url": "/users", "title": "Users", "h": ["All users"], "texts": ["show users"], "q": ["people", "keys"]},
        {"of": 0, "h": ["Add"], "buttons": ["add"], "anchor": ["New"], "q": ["make an account"]},
        {"of": 1, "texts": ["groups"], "q": ["teams"]},
        {"url": "/logs", "title": "Logs", "texts": ["show logs"], "q": ["mails"]},
    ],
}


@pytest.fixture
def invented(tmp_path: Path) -> Path:
    folder = tmp_path / "invented"
    folder.mkdir()
    (folder / "x-accounts.json").write_text(json.dumps(INVENTED))
    return folder


def test_a_page_that_is_opened_over_another_shows_what_is_beneath(invented):
    (application,) = read_applications(invented)
    assert application.name == "x-accounts"
    assert [page.url for page in application.pages] == ["/users"] * 3 + ["/logs"]
    shown = [[segment.text for segment in page.segments] for page in application.pages]
    assert shown == [
        ["Home", "All users", "show users"],
        ["Home", "All users", "show users", "Add", "add"],
        ["Home", "All users", "show users", "Add", "add", "groups"],
        ["Home", "show logs"],
    ]
    assert application.pages[1].anchor_texts == ("New",)
    assert application.questions == (
        ("people", 0), ("keys", 0), ("make an account", 1), ("teams", 2), ("mails", 3),
    )  # fmt: skip


def test_scores_in_training_are_maxsim_with_words(invented, weights):
    found = find_weights(weights)
    model = SentenceModel.load(found, batch_size=4, threads=0)
    encoder = TextEncoder(model, found)
    (application,) = read_applications(invented)
    site = adapter.site_of(application, model)
    pages = encoder.encode_pages(application.pages, encoder.prepare_site(count_segments(application.pages)))
    index = LexicalIndex(application.words())
    asked = [question for question, _ in application.questions]
    names = [page.node_id for page in application.pages]
    expected = maxsim(encoder.encode_queries(asked), [page.vectors for page in pages])
    expected += 0.5 * np.stack([index.scores(question, names) for question in asked])
    assert np.allclose(site.scores(site.question_vectors, site.text_vectors).numpy(), expected, atol=1e-5)
    assert site.right.tolist() == [0, 0, 1, 2, 3]


@pytest.mark.parametrize("pages", [False, True])
def test_adapters_start_as_the_original_and_learn_the_right_pages(invented, weights, tmp_path, pages):
    found = find_weights(weights)
    model = SentenceModel.load(found, batch_size=4, threads=0)
    site = adapter.site_of(read_applications(invented)[0], model)
    of_pages = adapter.AdaptedPages(found, rank=2, seed=2) if pages else None
    adapters = adapter.Adapters(adapter.AdaptedQueries(found, rank=2, seed=1), of_pages)
    with torch.no_grad():
        queries, texts = adapters.embed(site)
    assert (queries - site.question_vectors).abs().max() < 1e-5
    assert (texts - site.text_vectors).abs().max() < 2e-3  # what the lower layers compute is kept in float16
    options = argparse.Namespace(epochs=20, rate=0.05, stay=0.1, temperature=0.1, dropout=0.0, seed=1)
    training = adapter.Training(adapters, [site], options)
    losses = [training.epoch(number)["loss"] for number in range(20)]
    assert losses[-1] < losses[0] - 0.1
    # What is kept works as adapters of the encoder, and as a start.
    adapters.save(tmp_path)
    with torch.no_grad():
        queries, texts = adapters.embed(site)
    again = adapter.AdaptedQueries(found, rank=2, seed=3)
    adapter.Adapters(again).load(tmp_path)
    kept = model.with_adapter(tmp_path / "query_adapter.safetensors").embed_uncached(site.questions)
    with torch.no_grad():
        assert np.allclose(again.embed(site.questions).numpy(), kept, atol=0.01)
    assert np.allclose(kept, queries.numpy(), atol=0.01)
    assert (tmp_path / "page_adapter.safetensors").exists() == pages
    if pages:
        kept = model.with_adapter(tmp_path / "page_adapter.safetensors").embed_uncached(site.texts)
        assert np.allclose(kept, texts.numpy(), atol=0.01)
        assert not np.allclose(kept, site.text_vectors.numpy(), atol=0.01)


def test_each_page_of_the_invented_applications_is_asked_for():
    applications, held_out = read_applications(adapter.APPLICATIONS), read_applications(adapter.HELD_OUT)
    names = {application.name for application in applications}
    assert set(adapter.VALIDATE) < names
    assert names.isdisjoint(application.name for application in held_out)
    for application in (*applications, *held_out):
        asked = {page for _, page in application.questions}
        assert asked == set(range(len(application.pages))), application.name
        assert all(question.strip() for question, _ in application.questions), application.name


def test_the_rate_rises_and_falls():
    rates = [train.rate_at(step, 100) for step in range(100)]
    assert rates.index(max(rates)) == 9
    assert 0 < rates[-1] < 0.02


@pytest.mark.parametrize("module", [batches, documents, pairs, settings_files, train])
def test_the_examples_are_true(module):
    assert doctest.testmod(module).failed == 0
