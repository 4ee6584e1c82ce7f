"""A chat model behind a real HTTP server: what is sent, what is retried, and which error each failure is."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from pydantic import BaseModel, ConfigDict, SecretStr

from tests.chat_server import ChatServer, failure, raw, reply, serving_chat
from tests.sites.server import free_port
from waygraph.agents.models.chat import ChatMessage, ChatRequest, ImagePart
from waygraph.agents.models.create import open_model
from waygraph.agents.models.endpoint import EndpointModel
from waygraph.agents.models.structured import complete_as
from waygraph.core.chat_endpoint import MAX_REPLY_BYTES
from waygraph.core.errors import (
    BadModelReply,
    ContextTooLong,
    InvalidInput,
    ModelFailure,
    ModelRejected,
    ModelUnavailable,
)
from waygraph.core.settings import ChatSettings

HELLO = ChatRequest((ChatMessage.system("Be brief."), ChatMessage.user("Hello")))


def settings(url: str, **changes) -> ChatSettings:
    chosen = {"model": "m", "base_url": url, "retries": 1, "backoff_seconds": 0.001, "api_key": SecretStr("sk-1")}
    return ChatSettings(**(chosen | changes))


@asynccontextmanager
async def served(*answers, **changes) -> AsyncIterator[tuple[ChatServer, EndpointModel]]:
    async with serving_chat(*answers) as server, open_model(settings(server.url, **changes)) as model:
        yield server, model


async def failed(*answers, **changes) -> tuple[ModelFailure, int]:
    """Return the failure of a call, and the number of requests that were made."""
    async with served(*answers, **changes) as (server, model):
        with pytest.raises(ModelFailure) as caught:
            await model.complete(HELLO)
        return caught.value, len(server.requests)


async def test_a_reply_has_its_text_usage_and_price():
    async with served(reply("Hi"), input_price=1.0, output_price=10.0) as (server, model):
        answer = await model.complete(HELLO)
    assert (answer.text, answer.logprobs, answer.is_cut) == ("Hi", None, False)
    assert (answer.usage.calls, answer.usage.input_tokens, answer.usage.output_tokens) == (1, 100, 10)
    assert answer.usage.cost == pytest.approx(0.0002)
    assert server.keys == ["Bearer sk-1"]
    (sent,) = server.requests
    assert sent == {
        "model": "m",
        "temperature": 0.0,
        "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hello"}],
    }


async def test_options_are_sent_under_the_names_that_the_server_knows():
    asked = ChatRequest(HELLO.messages, temperature=0.5, top_p=0.9, max_tokens=5, top_logprobs=2, seed=7)
    async with (
        serving_chat(reply("Hi")) as server,
        open_model(settings(server.url, token_limit_field="max_completion_tokens", send_temperature=False)) as model,
    ):
        await model.complete(asked)
    sent = server.requests[0]
    del sent["messages"], sent["model"]
    assert sent == {"top_p": 0.9, "max_completion_tokens": 5, "seed": 7, "logprobs": True, "top_logprobs": 2}


async def test_images_are_sent_as_data():
    async with served(reply("A lamp")) as (server, model):
        await model.complete(ChatRequest((ChatMessage.user("What is it?", ImagePart(b"\x89PNG", "image/png")),)))
    text, image = server.requests[0]["messages"][0]["content"]
    assert text == {"type": "text", "text": "What is it?"}
    assert image["image_url"]["url"] == f"data:image/png;base64,{base64.b64encode(bytes([137, 80, 78, 71])).decode()}"


async def test_half_a_character_does_no_harm():
    async with served(raw(r'{"choices": [{"message": {"content": "\ud83d"}}]}', "application/json")) as (_, model):
        answer = await model.complete(ChatRequest((ChatMessage.user("\ud83d", "\ud83d"), ChatMessage.user("\ud83d"))))
    assert (answer.text, answer.usage.input_tokens) == ("\ufffd", 0)


async def test_log_probabilities_are_read_where_the_server_gives_them():
    token = {"token": "Yes", "logprob": -0.1, "bytes": None, "top_logprobs": [
        {"token": "Yes", "logprob": -0.1, "bytes": None}, {"token": "No", "logprob": -2.3, "bytes": None},
    ]}  # fmt: skip
    async with served(reply("Yes", logprobs={"content": [token], "refusal": None})) as (_server, model):
        answer = await model.complete(ChatRequest(HELLO.messages, top_logprobs=2))
    assert [(each.token, each.alternatives) for each in answer.logprobs] == [("Yes", (("Yes", -0.1), ("No", -2.3)))]


async def test_a_reply_that_ends_at_the_limit_says_so():
    async with served(reply("Once upon", finish="length")) as (_server, model):
        assert (await model.complete(HELLO)).is_cut


# ---- failures --------------------------------------------------------------------------------------------------------


async def test_passing_failures_are_retried_and_counted():
    async with served(
        failure(503), failure(429), raw("<h1>Bad gateway</h1>", "text/html", 502), reply("Hi"), retries=3
    ) as (server, model):
        answer = await model.complete(HELLO)
    assert (answer.text, answer.usage.calls, len(server.requests)) == ("Hi", 4, 4)


@pytest.mark.parametrize(
    ("answer", "kind", "requests"),
    [
        (failure(500), ModelUnavailable, 2),
        (failure(429), ModelUnavailable, 2),
        (failure(429, "insufficient_quota"), ModelRejected, 1),
        (failure(401), ModelRejected, 1),
        (failure(404, "model_not_found"), ModelRejected, 1),
        (failure(400, "unsupported_parameter"), ModelRejected, 1),
        (failure(400, "context_length_exceeded"), ContextTooLong, 1),
        (failure(413), ContextTooLong, 1),
        (raw("<!doctype html><title>Welcome</title>", "text/html"), BadModelReply, 1),
        (raw("{not json", "application/json"), BadModelReply, 1),
        (raw('{"choices": []}', "application/json"), BadModelReply, 1),
        (raw('{"choices": null}', "application/json"), BadModelReply, 1),
        (raw('{"choices": [{"index": 0}]}', "application/json"), BadModelReply, 1),
        (raw("[]", "application/json"), BadModelReply, 1),
        (raw("[" * 200_000, "application/json"), BadModelReply, 1),
        (raw('{"choices": [{"message": ' + '{"a":' * 100_000, "application/json"), BadModelReply, 1),
        (raw('{"choices": [{"message": {"content": {}}}]}', "application/json"), BadModelReply, 1),
        (raw('{"error": ' + "[" * 200_000, "application/json", 500), ModelUnavailable, 2),
        (raw(" " * (MAX_REPLY_BYTES + 1), "application/json"), BadModelReply, 1),
        (failure(302, location="http://127.0.0.1:9/"), ModelRejected, 1),
        (raw("<title>Forbidden</title>", "text/html", 403), ModelRejected, 1),
    ],
)
async def test_each_failure_has_a_class_of_its_own(answer, kind, requests):
    error, made = await failed(answer)
    assert (type(error), made) == (kind, requests)
    assert "sk-1" not in str(error)


async def test_a_servers_message_is_short_and_controls_no_terminal():
    loud = {"error": {"message": "\x1b[2J\n\u202egnp.exe " + 10_000 * "x", "code": "\x1b[31m"}}
    error, _ = await failed(raw(json.dumps(loud), "application/json", 400))
    assert r"answered 400: \x1b[2J \u202egnp.exe xxx" in error.message
    assert error.message.isprintable()
    assert len(error.message) < 500


async def test_a_server_is_waited_for_as_long_as_it_asks(monkeypatch):
    waits = []

    async def skip(seconds: float) -> None:
        waits.append(seconds)

    async with served(failure(429, retry_after="20"), reply("Hi")) as (_server, model):
        monkeypatch.setattr("waygraph.agents.models.endpoint.asyncio.sleep", skip)
        await model.complete(HELLO)
    assert 20 in waits


async def test_a_server_that_asks_for_too_long_a_wait_is_not_asked_again():
    error, made = await failed(failure(429, retry_after="3600"), retries=5, longest_wait_seconds=60)
    assert (type(error), error.retry_after_s, made) == (ModelUnavailable, 3600, 1)


async def test_a_server_that_does_not_answer_is_not_available():
    error, made = await failed(None, timeout_seconds=0.2)
    assert (type(error), made) == (ModelUnavailable, 2)


async def test_a_server_that_is_down_is_not_available():
    async with open_model(settings(f"http://127.0.0.1:{free_port()}/v1")) as model:
        with pytest.raises(ModelUnavailable, match="cannot be reached"):
            await model.complete(HELLO)


async def test_no_more_calls_are_made_at_a_time_than_allowed():
    async with served(None, concurrency=2) as (server, model):
        calls = asyncio.gather(*(model.complete(HELLO) for _ in range(6)), return_exceptions=True)
        await server.two_at_once.wait()
        for _ in range(100):  # time in which further calls would arrive
            await asyncio.sleep(0.001)
        assert server.most_at_once == 2
        server.ended.set()
        await calls
    assert (len(server.requests), server.most_at_once) == (6, 2)


async def test_a_model_must_be_configured():
    with pytest.raises(InvalidInput):
        async with open_model(ChatSettings()):
            pass


# ---- replies as records ----------------------------------------------------------------------------------------------


class Colour(BaseModel):
    model_config = ConfigDict(extra="forbid")
    name: str
    is_warm: bool


async def test_a_record_is_requested_by_its_schema():
    async with served(reply('{"name": "red", "is_warm": true}')) as (server, model):
        record, _ = await complete_as(model, HELLO, Colour)
    assert record == Colour(name="red", is_warm=True)
    form = server.requests[0]["response_format"]["json_schema"]
    assert (form["name"], form["strict"], form["schema"]["additionalProperties"]) == ("Colour", True, False)


@pytest.mark.parametrize(("mode", "form"), [("object", {"type": "json_object"}), ("text", None)])
async def test_servers_without_schemas_get_it_in_words(mode, form):
    async with served(reply('```json\n{"name": "red", "is_warm": true}\n```'), json_mode=mode) as (server, model):
        assert (await complete_as(model, HELLO, Colour))[0].name == "red"
    assert server.requests[0].get("response_format") == form
    assert '"is_warm"' in server.requests[0]["messages"][-1]["content"]


async def test_a_reply_of_another_form_is_repaired_once():
    async with served(reply('{"name": "red"}'), reply('{"name": "red", "is_warm": true}')) as (server, model):
        record, last = await complete_as(model, HELLO, Colour)
    assert record.is_warm
    assert (last.usage.calls, last.usage.input_tokens) == (2, 200)
    assert "is_warm" in server.requests[1]["messages"][-1]["content"]


@pytest.mark.parametrize(
    "text", ['{"' + 10_000 * "\\u001b" + '": 1}', "[" * 100_000, r'{"name": "\ud83d", "is_warm": true}']
)
async def test_a_reply_that_is_no_record_is_quoted_shortly_if_at_all(text):
    async with served(reply(text)) as (_server, model):
        with pytest.raises(BadModelReply) as caught:
            await complete_as(model, HELLO, Colour)
    assert len(caught.value.message) < 700
    assert caught.value.message.isprintable()


async def test_two_replies_of_another_form_are_a_failure():
    async with served(reply("red"), reply(None, finish="length")) as (server, model):
        with pytest.raises(BadModelReply, match="limit of tokens"):
            await complete_as(model, HELLO, Colour)
    assert len(server.requests) == 2
