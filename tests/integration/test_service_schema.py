"""Answers of the service match its OpenAPI document, for valid and invalid requests.

Requests are generated from the document, valid and broken ones, and answers are checked against it: no crash, only
documented status codes and content types, and bodies that fit their schemas.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import schemathesis
import uvicorn
from fastapi import FastAPI
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from tests.small_map import SmallMap
from waygraph.core.schemas import SearchRequest
from waygraph.core.settings import Settings
from waygraph.index.store import Store
from waygraph.pipeline.encode.registry import create_encoder
from waygraph.serve.http.api import create_api
from waygraph.serve.query.maps import Maps

MAP = SmallMap("tea.example")
CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]


@contextmanager
def running(app: FastAPI) -> Iterator[str]:
    """An HTTP server in this process; gives its URL."""
    listening = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(app, log_level="error"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
    thread.start()
    try:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join()
        listening.close()


@pytest.fixture(scope="module")
def document(tmp_path_factory: pytest.TempPathFactory) -> Iterator[schemathesis.schemas.BaseSchema]:
    """The OpenAPI document of a service with one map, and the service."""
    folder = tmp_path_factory.mktemp("schema") / "maps"
    store = Store.open(str(folder), create=True)
    store.publish(MAP.draft(create_encoder(Settings().encode), store.blobs))
    config = Settings(store=str(folder))
    with Maps(config) as maps:
        maps.open()
        maps.search(MAP.site, SearchRequest(query="cards"))  # loads the encoder
        with running(create_api(config, maps)) as url:
            yield schemathesis.openapi.from_url(f"{url}/openapi.json")


def test_answers_match_the_document(document: schemathesis.schemas.BaseSchema) -> None:
    asked = []
    for found in document.get_all_operations():
        operation = found.ok()

        @settings(
            max_examples=15,
            derandomize=True,
            database=None,
            phases=[Phase.explicit, Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @given(operation.as_strategy(), st.booleans())
        def ask(case: schemathesis.Case, of_the_map: bool) -> None:
            if of_the_map and "site" in case.path_parameters:
                case.path_parameters["site"] = MAP.site  # else nearly every question is about a site that is not there
            case.call_and_validate(checks=CHECKS)

        ask()
        asked.append(operation.label)
    assert len(asked) == len(set(asked)) >= 14, asked
