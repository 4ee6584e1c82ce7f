"""A service whose questions are encoded by a deployment of its own answers like one that encodes them itself."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx

from index.store import Store
from pipeline.encode.registry import create_encoder
from tests.service_process import RunningService
from tests.small_map import SmallMap
from waygraph import Settings, Waygraph

MAP = SmallMap("tea.example")


def test_questions_are_encoded_together_by_another_process_and_found_as_ever(tmp_path: Path) -> None:
    opened = Store.open(str(tmp_path / "maps"), create=True)
    opened.publish(MAP.draft(create_encoder(Settings().encode), opened.blobs))
    service = RunningService(tmp_path / "maps", encoder_replicas=1)
    try:
        deployments = {name for each in service.family() for name in each.cmdline() if "ServeReplica" in name}
        assert {name.split(":")[-1] for name in deployments} == {"maps", "encoders"}
        questions = {"add a new credit card": "cards", "how long do I have to give an order back": "returns"}
        with httpx.Client(base_url=service.url, timeout=60) as http, ThreadPoolExecutor(8) as pool:
            assert http.get("/readyz").json()["encoder"] == "text"

            def best(number: int) -> tuple[str, str]:
                question, name = list(questions.items())[number % 2]
                asked = {"query": f"{question} {'please ' * number}", "k": 1}
                answer = http.post("/v1/sites/tea.example/search", json=asked)
                return answer.json()["hits"][0]["node_id"], MAP.id(name)

            for found, wanted in pool.map(best, range(16)):
                assert found == wanted
            empty = http.post("/v1/sites/tea.example/search", json={"query": " "})
            assert empty.status_code == 422
        with Waygraph(service.url) as remote, Waygraph(tmp_path / "maps") as local:
            assert remote.search(MAP.site, "send it back", 3) == local.search(MAP.site, "send it back", 3)
    finally:
        out, errors = service.stop()
    assert (out, errors) == ("ended\n", "")
