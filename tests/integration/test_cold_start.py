"""What a process imports before its first answer: nothing that takes a second and is not needed."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.small_map import SmallMap
from waygraph.core.settings import Settings
from waygraph.index.store import Store
from waygraph.pipeline.encode.registry import create_encoder

#: Libraries of encoders that see, of bulk runs, of servers and of other encoders than the default one.
HEAVY = {"fastapi", "onnx", "pandas", "qdrant_client", "ray", "scipy", "sentence_transformers", "torch", "transformers"}
#: Runs a command, and writes to stderr which of those it has imported.
PROGRAM = f"""
import sys
from waygraph.cli import main
code = main(sys.argv[1:])
sys.stderr.write(f"{{code}} {{sorted({HEAVY!r} & sys.modules.keys())}}")
"""


@pytest.fixture(scope="module")
def store(tmp_path_factory) -> Path:
    settings = Settings(store=str(tmp_path_factory.mktemp("cold") / "maps"))
    opened = Store.open(settings.store, create=True)
    opened.publish(SmallMap().draft(create_encoder(settings.encode), opened.blobs))
    return Path(settings.store)


@pytest.mark.parametrize(
    "words",
    [
        ["--help"],
        ["search", "tea.example", "send something back", "--store"],
        ["path", "tea.example", "/returns", "--store"],
        ["show", "tea.example", "--store"],
        ["sites", "--store"],
        ["mcp", "--store"],
    ],
    ids=lambda words: words[0],
)
def test_a_command_imports_no_library_that_it_does_not_use(store, words):
    command = [sys.executable, "-c", PROGRAM, *words, *([str(store)] if words[-1] == "--store" else [])]
    ran = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True)
    assert ran.stderr.endswith("0 []"), ran.stderr


def test_the_answer_of_a_cold_search_is_the_right_state(store):
    command = [sys.executable, "-m", "waygraph", "search", "tea.example", "send something back", "--store", str(store)]
    ran = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "/returns" in ran.stdout


def test_a_process_that_encodes_pages_imports_neither_torch_nor_transformers(store):
    program = f"""
import sys
import waygraph.pipeline.jobs.encoding.encoder_actor
from waygraph.core.settings import EncodeSettings
from waygraph.index.store import Store
from waygraph.pipeline.encode.registry import create_encoder
from waygraph.pipeline.encode.text_counts import count_segments
encoder = create_encoder(EncodeSettings())
seen = list(Store.open({str(store)!r}).observations("tea.example").values())
assert encoder.encode_pages(seen, encoder.prepare_site(count_segments(seen)))
print(sorted({{"torch", "transformers", "sentence_transformers", "scipy"}} & sys.modules.keys()))
"""
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ran.stdout == "[]\n"


@pytest.mark.parametrize(
    ("what", "message"),
    [
        ("create_encoder(EncodeSettings(encoder='colmodernvbert'))", "The encoder 'colmodernvbert' needs 'torch'"),
        ("VectorIndexFactory(VectorSettings(engine='packed'))", "The engine 'packed' needs 'torch'"),
        ("Reranker(ServeSettings(reranker='nowhere')).check()", "The reranker needs 'torch'"),
    ],
    ids=["encoder", "engine", "reranker"],
)
def test_without_torch_what_needs_it_says_what_to_install(what, message):
    program = f"""
import sys
sys.modules["torch"] = None  # what an import finds is as if it were not installed
from waygraph.core.errors import EnvironmentMissing
from waygraph.core.settings import EncodeSettings, ServeSettings, VectorSettings
from waygraph.index.vectors.engines import VectorIndexFactory
from waygraph.pipeline.encode.registry import create_encoder
from waygraph.serve.query.reranker import Reranker
try:
    {what}
except EnvironmentMissing as error:
    print(error)
"""
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert message in ran.stdout
    assert "pip install 'waygraph[torch]'" in ran.stdout


def test_a_process_that_publishes_maps_imports_no_browser():
    program = f"""
import sys
import waygraph.pipeline.jobs.run.invocation, waygraph.pipeline.jobs.actors.local_actors
print(sorted({HEAVY | {"playwright"}!r} & sys.modules.keys()))
"""
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ran.stdout == "[]\n"
