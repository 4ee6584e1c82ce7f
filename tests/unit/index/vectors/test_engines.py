import numpy as np
import pytest

from waygraph.core.errors import InvalidInput, ServiceError
from waygraph.core.settings import VectorSettings
from waygraph.index.vectors import EdgeIndex, MapKey, PackedIndex
from waygraph.index.vectors.engines import VectorIndexFactory


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
    engines = VectorIndexFactory(VectorSettings(**settings))
    index = engines.create(4, MapKey("shop.example", 1, ""))
    assert isinstance(index, kind)
    index.add([("a", np.eye(4)), ("b", -np.eye(4))])
    index.compact()
    assert [hit.node_id for hit in index.search(np.eye(4)[:1], 2)] == ["a", "b"]
    index.close()
    engines.close()
    engines.close()


@pytest.mark.parametrize("settings", [{"engine": "qdrant"}, {"url": "http://localhost:6333"}])
def test_engine_url_is_accepted_for_the_server_engine_only(settings):
    with pytest.raises(InvalidInput, match="URL of a Qdrant server"):
        VectorIndexFactory(VectorSettings(**settings))


def test_unreachable_server_is_reported_when_a_map_is_opened(monkeypatch):
    monkeypatch.setattr("time.sleep", lambda _: None)
    engines = VectorIndexFactory(
        VectorSettings(engine="qdrant", url="http://127.0.0.1:9", grpc_port=0, timeout_seconds=1)
    )
    with pytest.raises(ServiceError, match="Opening Qdrant collection"):
        engines.create(4, MapKey("shop.example", 1, ""))
    engines.close()
