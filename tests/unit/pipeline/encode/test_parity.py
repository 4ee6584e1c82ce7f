"""`waygraph doctor --encoder NAME`: a correct encoder passes, and each check detects its kind of fault."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.numpy import save_file

from tests.tiny_jina import make_checkpoint, one_thread  # noqa: F401
from waygraph.cli import main
from waygraph.core.errors import InvalidInput
from waygraph.core.settings import EncodeSettings
from waygraph.pipeline.encode.parity import Check, MemoryScreenshots, compare_with_oracle, examine
from waygraph.pipeline.encode.vision.jina_v4.encoder import JinaV4Encoder
from waygraph.pipeline.encode.vision.jina_v4.parity import examine_jina_v4


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    return make_checkpoint(tmp_path_factory.mktemp("jina") / "v4")


@pytest.fixture
def screenshots() -> MemoryScreenshots:
    return MemoryScreenshots()


@pytest.fixture
def encoder(folder, screenshots) -> JinaV4Encoder:
    return JinaV4Encoder.load(EncodeSettings(weights=folder, device="cpu"), screenshots)


def checks(encoder, screenshots) -> dict[str, Check]:
    found = [*examine(encoder, screenshots, context={}, dtype="float32"), *examine_jina_v4(encoder, screenshots)]
    return {check.name: check for check in found}


def wrong(encoder, screenshots) -> set[str]:
    return {name for name, check in checks(encoder, screenshots).items() if not check.ok}


def test_correct_encoder_passes_every_check(encoder, screenshots):
    found = checks(encoder, screenshots)
    assert all(check.ok for check in found.values()), found
    assert found["token counts"].found == "N + 11 for 51 sizes"
    assert found["updates"].found == "22 modules"


def test_wrong_merged_weight_is_detected(encoder, screenshots):
    layer = encoder.model.backbone.language_model.layers[0].mlp.up_proj
    layer.weight.mul_(1 + 0.3 * torch.randn(layer.weight.shape))
    assert wrong(encoder, screenshots) == {"merged as unmerged"}


def test_network_that_ignores_positions_is_detected(encoder, screenshots):
    encoder.model.backbone.language_model.rotary_emb.inv_freq.zero_()
    assert wrong(encoder, screenshots) == {"positions matter"}


def test_vectors_that_are_not_of_unit_length_are_detected(encoder, screenshots, monkeypatch):
    honest = encoder.model.forward
    monkeypatch.setattr(encoder.model, "forward", lambda batch: 2 * honest(batch))
    assert "unit length" in wrong(encoder, screenshots)


def test_vectors_that_depend_on_their_batch_are_detected(encoder, screenshots, monkeypatch):
    honest = encoder.model.forward
    shift = torch.nn.functional.normalize

    def forward(batch):
        vectors = honest(batch)
        return shift(vectors + 0.5 * (len(vectors) > 1), dim=-1)

    monkeypatch.setattr(encoder.model, "forward", forward)
    assert "alone as in a batch" in wrong(encoder, screenshots)


@pytest.fixture
def oracle(encoder, screenshots, tmp_path):
    """Writes what the encoder computes as an oracle's vectors, changed as a test wants."""

    def write(change=lambda vectors: vectors) -> Path:
        picture = np.random.default_rng(5).integers(0, 255, (120, 200, 3), np.uint8)
        from waygraph.pipeline.encode.parity import png

        (page,) = encoder.encode_pages([screenshots.page(png(picture))], {})
        stored = {
            "image.0": picture,
            "image_vectors.0": change(page.vectors),
            "query_vectors.0": change(encoder.encode_query("where are my orders")),
        }
        save_file(stored, tmp_path / "oracle.safetensors", metadata={"query.0": "where are my orders"})
        return tmp_path / "oracle.safetensors"

    return write


def test_vectors_of_an_oracle_are_compared_token_by_token(encoder, screenshots, oracle):
    found = list(compare_with_oracle(encoder, screenshots, oracle()))
    assert [check.name for check in found] == ["oracle image 0", "oracle query 0"]
    assert all(check.ok for check in found)
    assert "cosine 1.0000" in found[0].found


@pytest.mark.parametrize(
    "change",
    [lambda v: np.roll(v, 1, axis=0).copy(), lambda v: v[1:].copy(), lambda v: v + 0.5, np.zeros_like],
    ids=["rows moved", "row missing", "shifted", "zeros"],
)
def test_vectors_that_differ_from_an_oracle_are_detected(encoder, screenshots, oracle, change):
    assert not any(check.ok for check in compare_with_oracle(encoder, screenshots, oracle(change)))


def test_a_file_that_is_no_oracle_is_an_error(encoder, screenshots, tmp_path):
    for content in (b"", b"not vectors"):
        (tmp_path / "oracle").write_bytes(content)
        with pytest.raises(InvalidInput, match="no oracle vectors"):
            list(compare_with_oracle(encoder, screenshots, tmp_path / "oracle"))
    save_file({"something": np.zeros(3)}, tmp_path / "oracle")
    with pytest.raises(InvalidInput, match="holds no vectors"):
        list(compare_with_oracle(encoder, screenshots, tmp_path / "oracle"))


@pytest.fixture
def doctor(monkeypatch, tmp_path):
    """Runs `waygraph doctor` on an encoder alone: the browser, Ray and the store have tests of their own."""
    monkeypatch.setattr("waygraph.cli.commands.doctor.check_all", lambda _: [])

    def run(weights: Path | None, *words: object) -> int:
        if weights is not None:
            monkeypatch.setenv("WAYGRAPH_ENCODE__WEIGHTS", str(weights))
        return main(["doctor", "--store", str(tmp_path / "maps"), *map(str, words)])

    return run


def test_doctor_reports_every_check_of_the_encoder(doctor, folder, oracle, capsys):
    assert doctor(folder, "--encoder", "jina-v4", "--oracle", oracle(), "--json") == 0
    found = {row["part"]: row for row in json.loads(capsys.readouterr().out)["checks"]}
    for name in (
        "fingerprint",
        "token counts",
        "unit length",
        "merged as unmerged",
        "positions matter",
        "oracle image 0",
    ):
        assert found[f"jina-v4: {name}"]["ok"], name


def test_doctor_fails_when_the_encoder_does_not_compute_what_it_should(doctor, folder, oracle, capsys):
    file = oracle(lambda vectors: np.roll(vectors, 1, axis=0).copy())
    assert doctor(folder, "--encoder", "jina-v4", "--oracle", file) == 6
    out, err = capsys.readouterr()
    assert "Wrong: jina-v4: oracle image 0, jina-v4: oracle query 0" in err
    assert "wrong" in out


def test_doctor_reports_what_an_encoder_lacks(doctor, capsys, tmp_path):
    assert doctor(tmp_path, "--encoder", "jina-v4") == 6
    out, err = capsys.readouterr()
    assert "config.json is missing" in out
    assert "Missing: jina-v4" in err


def test_doctor_checks_the_default_encoder_too(doctor, capsys):
    assert doctor(None, "--encoder", "text") == 0
    assert "text: alone as in a batch" in capsys.readouterr().out


def test_an_oracle_without_an_encoder_is_refused(doctor, capsys, tmp_path):
    assert doctor(None, "--oracle", tmp_path) == 2
    assert "--encoder" in capsys.readouterr().err
