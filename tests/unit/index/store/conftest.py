"""A store on a disk, and one in a bucket."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.s3_server import BUCKET, s3_server
from waygraph.index.store import Store


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store.open(str(tmp_path / "maps"), create=True)


@pytest.fixture(scope="module")
def _server() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch, s3_server(patch):
        yield


@pytest.fixture
def bucket(_server: None, request: pytest.FixtureRequest) -> Store:
    return Store.open(f"s3://{BUCKET}/{abs(hash(request.node.name))}", create=True)
