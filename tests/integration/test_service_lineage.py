"""Requests for a state by the id that it had in an earlier version."""

from dataclasses import replace

import httpx

from tests.small_map import SmallMap
from waygraph.core.settings import Settings
from waygraph.index.store import Store
from waygraph.pipeline.encode.registry import create_encoder
from waygraph.serve.http.api import create_api
from waygraph.serve.query.maps import Maps


async def test_ids_of_earlier_versions_redirect_to_the_current_id_or_are_gone(tmp_path):
    small, settings = SmallMap("tea.example"), Settings(store=str(tmp_path / "maps"))
    store = Store.open(settings.store, create=True)
    home = small.id("home")
    draft = small.draft(create_encoder(settings.encode), store.blobs)
    store.publish(replace(draft, lineage={"a" * 32: home, "b" * 32: ""}))
    with Maps(settings) as maps:
        maps.open()
        app = httpx.ASGITransport(create_api(settings, maps))
        async with httpx.AsyncClient(transport=app, base_url="http://localhost") as client:
            moved = await client.get(f"/v1/sites/tea.example/nodes/{'a' * 32}")
            picture = await client.get(f"/v1/sites/tea.example/nodes/{'a' * 32}/screenshot")
            gone = await client.get(f"/v1/sites/tea.example/nodes/{'b' * 32}")
            unknown = await client.get(f"/v1/sites/tea.example/nodes/{'c' * 32}")
            followed = await client.get(f"/v1/sites/tea.example/nodes/{'a' * 32}", follow_redirects=True)
    assert (moved.status_code, moved.headers["location"]) == (308, f"/v1/sites/tea.example/nodes/{home}")
    assert picture.headers["location"] == f"/v1/sites/tea.example/nodes/{home}/screenshot"
    assert (gone.status_code, gone.json()["title"]) == (410, "Gone")
    assert unknown.status_code == 404
    assert followed.json()["node_id"] == home
