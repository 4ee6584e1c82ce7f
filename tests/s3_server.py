"""S3 server on loopback (moto) that can refuse requests and counts them."""

from __future__ import annotations

import logging
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import boto3
import pytest
from moto.server import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import make_server

BUCKET = "maps-of-tests"


class S3Server:
    """Attributes: `requests` by method, `most_at_once`, and `refuse`: whether a request (method, path) is refused."""

    def __init__(self) -> None:
        logging.getLogger("werkzeug").setLevel(logging.ERROR)
        self._app = DomainDispatcherApplication(create_backend_app)
        self._server = make_server("127.0.0.1", 0, self._answer, threaded=True)
        self._lock = threading.Lock()
        self._now = 0
        self.requests: Counter[str] = Counter()
        self.most_at_once = 0
        self.refuse: Callable[[str, str], bool] = lambda *_: False
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    def _answer(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        method, path = environ["REQUEST_METHOD"], environ["PATH_INFO"]
        with self._lock:
            self.requests[method] += 1
            self._now += 1
            self.most_at_once = max(self.most_at_once, self._now)
        try:
            if self.refuse(method, path):
                environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
                start_response("507 Insufficient Storage", [("Content-Type", "application/xml")])
                return [b"<Error><Code>InsufficientStorage</Code><Message>The disk is full</Message></Error>"]
            return list(self._app(environ, start_response))
        finally:
            with self._lock:
                self._now -= 1

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


@contextmanager
def s3_server(patch: pytest.MonkeyPatch) -> Iterator[S3Server]:
    """Start a server with an empty bucket, configured in the environment of this process and its children."""
    server = S3Server()
    patch.setenv("AWS_ENDPOINT_URL", server.url)
    patch.setenv("AWS_ACCESS_KEY_ID", "key")
    patch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    patch.setenv("AWS_REGION", "us-east-1")
    patch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    client = boto3.client("s3", region_name="us-east-1")
    try:
        client.create_bucket(Bucket=BUCKET)
        yield server
    finally:
        client.close()
        server.close()
