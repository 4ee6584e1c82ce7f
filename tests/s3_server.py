"""S3 server on loopback that can refuse requests and counts them: moto, or a proxy of the server at WAYGRAPH_S3.

That server must know the key `key` with the secret `secret`.
"""

from __future__ import annotations

import http.client
import logging
import os
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any
from urllib.parse import urlsplit

import boto3
import pytest
from moto.server import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import make_server

BUCKET = "maps-of-tests"
_HOP_BY_HOP = {"connection", "keep-alive", "transfer-encoding"}


class S3Server:
    """Attributes: `requests` by method, `most_at_once`, and `refuse`: whether a request (method, path) is refused."""

    def __init__(self) -> None:
        logging.getLogger("werkzeug").setLevel(logging.ERROR)
        upstream = os.environ.get("WAYGRAPH_S3")
        self._app = _Proxy(upstream) if upstream else DomainDispatcherApplication(create_backend_app)
        self._server = make_server("127.0.0.1", 0, self._answer, threaded=True)
        self._lock = threading.Lock()
        # Object stores check the condition of a write and store it in one step. moto does it in two, and lets two win.
        self._writes: AbstractContextManager[object] = nullcontext() if upstream else threading.Lock()
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
            with nullcontext() if method in {"GET", "HEAD"} else self._writes:
                return list(self._app(environ, start_response))
        finally:
            with self._lock:
                self._now -= 1

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


class _Proxy:
    """A WSGI application that passes requests on as they are: their signatures cover the host that was asked."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self._host, self._port = parts.hostname or "", parts.port

    def __call__(self, environ: dict[str, Any], start_response: Any) -> list[bytes]:
        headers = {
            name[5:].replace("_", "-"): value
            for name, value in environ.items()
            if name.startswith("HTTP_") and name not in {"HTTP_EXPECT", "HTTP_CONNECTION", "HTTP_TRANSFER_ENCODING"}
        }
        headers |= {
            name.replace("_", "-"): environ[name] for name in ("CONTENT_TYPE", "CONTENT_LENGTH") if environ.get(name)
        }
        chunked = environ.get("wsgi.input_terminated", False)
        body = environ["wsgi.input"].read() if chunked else environ["wsgi.input"].read(_length(environ))
        connection = http.client.HTTPConnection(self._host, self._port, timeout=60)
        try:
            connection.request(environ["REQUEST_METHOD"], environ["RAW_URI"], body or None, headers)
            answer = connection.getresponse()
            content = answer.read()
        finally:
            connection.close()
        passed = [(name, value) for name, value in answer.getheaders() if name.lower() not in _HOP_BY_HOP]
        if environ["REQUEST_METHOD"] != "HEAD":
            passed = [pair for pair in passed if pair[0].lower() != "content-length"]
        start_response(f"{answer.status} {answer.reason}", passed)
        return [content] if content else []


def _length(environ: dict[str, Any]) -> int:
    return int(environ.get("CONTENT_LENGTH") or 0)


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
        _delete_bucket(client)
        client.close()
        server.close()


def _delete_bucket(client: Any) -> None:
    for page in client.get_paginator("list_objects_v2").paginate(Bucket=BUCKET):
        for found in page.get("Contents", ()):
            client.delete_object(Bucket=BUCKET, Key=found["Key"])
    client.delete_bucket(Bucket=BUCKET)
