"""Which map stays current when a new one is published."""

import asyncio
from types import SimpleNamespace

import pytest

from tests import screenshot_map
from waygraph.core.errors import ContentStopped
from waygraph.core.settings import Settings
from waygraph.index.graph import InteractionGraph
from waygraph.index.store import Store
from waygraph.pipeline.explore.records.capture import SENDS_STOPPED
from waygraph.pipeline.jobs.actors.ray_actors import RayActors
from waygraph.pipeline.jobs.encoding.pool_size import EncoderResources
from waygraph.pipeline.jobs.publishing.publisher_actor import PublisherActor


def test_a_map_without_its_content_does_not_replace_one_with_more_states(tmp_path):
    settings = Settings(store=str(tmp_path))
    store = Store.open(settings.store, create=True)
    screenshot_map.publish(store, "site.example", screenshot_map.colours(3), run_id="earlier")
    report = SimpleNamespace(stopped_by=SENDS_STOPPED, advice=("Allow POST /api.",))
    capture = SimpleNamespace(site="site.example", graph=InteractionGraph(), report=report, refreshes=None)
    publisher = PublisherActor(settings, "later", EncoderResources(1, 1, cpus=1.0, gpus=0.0), RayActors())
    with pytest.raises(ContentStopped) as stopped:
        asyncio.run(publisher.publish(capture))
    assert "Version 1" in stopped.value.message
    assert stopped.value.hint == "Allow POST /api."
    assert store.current("site.example") == 1
