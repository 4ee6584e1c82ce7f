"""A service in this process, behind a key and a path prefix, that can be stopped and started again; screenshots."""

from __future__ import annotations

import io
import socket
import threading
from typing import Any

import uvicorn
from PIL import Image, ImageDraw
from starlette.types import ASGIApp, Receive, Scope, Send

from waygraph.core.settings import Settings
from waygraph.serve.http.api import create_api
from waygraph.serve.query.maps import Maps

KEY = "a-key-of-these-tests"
PREFIX = "/maps"


def screenshot_of(name: str) -> bytes:
    image = Image.new("RGB", (1280, 800), "white")
    draw = ImageDraw.Draw(image)
    draw.rectangle((0, 0, 1280, 36), fill="darkslategray")
    draw.text((20, 8), name, fill="white", font_size=20)
    written = io.BytesIO()
    image.save(written, "JPEG")
    return written.getvalue()


class RestartableService:
    """The service behind a proxy that removes a path prefix; it can be stopped, and started at the same address."""

    def __init__(self, store: str, **settings: Any) -> None:
        self._settings = Settings(store=store, serve={"api_keys": [KEY]}, **settings)
        self._port = 0
        self.start()

    def start(self) -> None:
        self._maps = Maps(self._settings)
        self._maps.open()
        self._listening = socket.create_server(("127.0.0.1", self._port))
        self._port = self._listening.getsockname()[1]
        config = uvicorn.Config(without_prefix(create_api(self._settings, self._maps)), log_level="error")
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._server.run, kwargs={"sockets": [self._listening]})
        self._thread.start()

    def stop(self) -> None:
        self._server.should_exit = True
        self._thread.join()
        self._listening.close()
        self._maps.close()

    def refresh(self) -> None:
        """Pick up what was published, as the service does in the background."""
        self._maps.refresh()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}{PREFIX}/"


def without_prefix(app: ASGIApp) -> ASGIApp:
    async def proxy(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            assert scope["path"].startswith(f"{PREFIX}/"), scope["path"]
            path = scope["path"].removeprefix(PREFIX)
            scope = {**scope, "path": path, "raw_path": scope["raw_path"].removeprefix(PREFIX.encode())}
        await app(scope, receive, send)

    return proxy
