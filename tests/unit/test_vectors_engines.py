import numpy as np
import pytest

from index.vectors import EdgeIndex, MapKey, PackedIndex
from index.vectors.engines import Engines
from waygraph.errors import InvalidInput, ServiceError
from waygraph.settings import VectorSettings


@pytest.mark.parametrize(
    ("settings", "kind"),
    [
        ({}, EdgeIndex),
        ({"storage": "int8"}, EdgeIndex),
        ({"quantization": "scalar"}, EdgeIndex),
        ({"engine": "packed"}, PackedIndex),
        ({"engine": "packed", "dtype": "bfloat16"}, PackedIndex),
    ],
)
def test_settings_choose_the_engine(settings, kind):
    engines = Engines(VectorSettings(**settings))
    index = engines.make(4, MapKey("shop.example", 1, ""))
    assert isinstance(index, kind)
    index.add([("a", np.eye(4)), ("b", -np.eye(4))])
    index.compact()
    assert [hit.node_id for hit in index.search(np.eye(4)[:1], 2)] == ["a", "b"]
    index.close()
    engines.close()
    engines.close()


@pytest.mark.parametrize("settings", [{"engine": "qdrant"}, {"url": "http://localhost:6333"}])
def test_a_url_goes_with_the_server_and_with_nothing_else(settings):
    with pytest.raises(InvalidInput, match="URL of a Qdrant server"):
        Engines(VectorSettings(**settings))


def test_a_server_that_is_not_there_is_found_out_when_a_map_is_opened(monkeypatch):
    monkeypatch.setattr("time.sleep", lambda _: None)
    engines = Engines(VectorSettings(engine="qdrant", url="http://127.0.0.1:9", grpc_port=0, timeout_seconds=1))
    with pytest.raises(ServiceError, match="Opening Qdrant collection"):
        engines.make(4, MapKey("shop.example", 1, ""))
    engines.close()
