"""A local HTTP server that speaks the chat completions API, and fails in the ways that real ones do."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web


def reply(text: str | None, *, finish: str = "stop", **message: Any) -> web.Response:
    """Return a completion with this text."""
    choice = {"index": 0, "finish_reason": finish, "message": {"role": "assistant", "content": text}, **message}
    return web.json_response(
        {
            "id": "1",
            "object": "chat.completion",
            "created": 0,
            "model": "m",
            "choices": [choice],
            "usage": {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110},
        }
    )


def failure(status: int, code: str | None = None, **headers: str) -> web.Response:
    """Return an error as the API has it."""
    body = {"error": {"message": "no", "type": "t", "param": None, "code": code}}
    return web.json_response(
        body, status=status, headers={name.replace("_", "-"): text for name, text in headers.items()}
    )


def raw(text: str, content_type: str, status: int = 200) -> web.Response:
    """Return any body."""
    return web.Response(text=text, content_type=content_type, status=status)


class ChatServer:
    """Gives prepared answers in order, the last one for ever; None never answers."""

    def __init__(self, answers: Iterable[web.Response | None]) -> None:
        self._answers = deque(answers)
        self.url = ""
        self.requests: list[dict[str, Any]] = []
        self.keys: list[str] = []
        self.at_once = 0
        self.most_at_once = 0
        self.two_at_once = asyncio.Event()
        self.ended = asyncio.Event()

    async def answer(self, request: web.Request) -> web.Response:
        """Answer a request."""
        self.requests.append(await request.json())
        self.keys.append(request.headers.get("Authorization", ""))
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        if self.at_once == 2:
            self.two_at_once.set()
        await asyncio.sleep(0)
        prepared = self._answers.popleft() if len(self._answers) > 1 else self._answers[0]
        try:
            if prepared is None:
                await self.ended.wait()
                return web.Response()
            # A response can be sent once only.
            return web.Response(body=prepared.body, status=prepared.status, headers=prepared.headers.copy())
        finally:
            self.at_once -= 1


@asynccontextmanager
async def serving_chat(*answers: web.Response | None) -> AsyncIterator[ChatServer]:
    """Serve until the end of the block."""
    server = ChatServer(answers)
    application = web.Application(client_max_size=2**26)
    application.router.add_post("/v1/chat/completions", server.answer)
    runner = web.AppRunner(application, shutdown_timeout=1)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        host, port = runner.addresses[0][:2]
        server.url = f"http://{host}:{port}/v1"
        yield server
    finally:
        server.ended.set()
        await runner.cleanup()
