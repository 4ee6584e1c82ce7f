"""Files of batch services: requests have the body of a call, and replies are found by their ids."""

import json

import pytest

from waygraph.agents.models.batch_file import batch_lines, read_replies
from waygraph.agents.models.chat import ChatMessage, ChatRequest
from waygraph.agents.models.request_body import request_body
from waygraph.core.errors import InvalidInput
from waygraph.core.settings import ChatSettings

SETTINGS = ChatSettings(model="qwen", input_price=1.0, output_price=2.0)


def request(text: str) -> ChatRequest:
    return ChatRequest((ChatMessage.system("Be brief."), ChatMessage.user(text)), max_tokens=50)


def reply(custom_id: str, text: str | None, **others) -> str:
    choice = {"message": {"role": "assistant", "content": text}, "finish_reason": "stop"} | others
    usage = {"prompt_tokens": 100, "completion_tokens": 10}
    body = {"model": "qwen-7b", "choices": [choice], "usage": usage}
    return json.dumps({"custom_id": custom_id, "response": {"status_code": 200, "body": body}, "error": None})


def test_each_line_is_a_call_with_an_id():
    requests = {"a": request("One\u2028line"), "b": request("Two")}
    written = "".join(batch_lines(requests, SETTINGS))
    lines = [json.loads(line) for line in written.split("\n")[:-1]]
    assert [line["custom_id"] for line in lines] == ["a", "b"]
    assert {(line["method"], line["url"]) for line in lines} == {("POST", "/v1/chat/completions")}
    assert [line["body"] for line in lines] == [request_body(each, SETTINGS) for each in requests.values()]
    assert lines[0]["body"]["model"] == "qwen"
    assert lines[0]["body"]["max_tokens"] == 50


def test_a_text_with_line_separators_stays_one_line_when_it_is_read_again(tmp_path):
    file = tmp_path / "replies.jsonl"
    file.write_text(json.dumps(json.loads(reply("a", "x\u2028y\x85z")), ensure_ascii=False) + "\n")
    assert read_replies(file, SETTINGS)["a"].text == "x\u2028y\x85z"


def test_replies_are_found_by_their_ids_with_what_they_took(tmp_path):
    file = tmp_path / "replies.jsonl"
    lines = [reply("b", "second"), "", reply("a", "first"), reply("c", "cut", finish_reason="length"), reply("d", None)]
    file.write_text("\n".join(lines))
    found = read_replies(file, SETTINGS)
    assert {name: each.text for name, each in found.items()} == {"a": "first", "b": "second", "c": "cut", "d": ""}
    assert found["c"].is_cut
    assert not found["a"].is_cut
    usage = found["a"].usage
    assert (usage.model, usage.calls, usage.input_tokens, usage.output_tokens) == ("qwen-7b", 1, 100, 10)
    assert usage.cost == pytest.approx(120 / 1e6)
    assert read_replies(file, ChatSettings())["a"].usage.cost is None
    file.write_text(reply("a", "first").replace("qwen-7b", ""))
    assert read_replies(file, SETTINGS)["a"].usage.model == "qwen"


def test_half_of_a_character_in_a_reply_is_replaced(tmp_path):
    file = tmp_path / "replies.jsonl"
    file.write_text(reply("a", "broken \ud83d"))
    assert read_replies(file, SETTINGS)["a"].text == "broken \N{REPLACEMENT CHARACTER}"


def test_requests_that_failed_have_no_reply_and_the_last_of_two_counts(tmp_path):
    failed = {"custom_id": "a", "response": {"status_code": 429, "body": {"error": {}}}, "error": None}
    expired = {"custom_id": "b", "response": None, "error": {"code": "batch_expired"}}
    refused = {"custom_id": "d", "response": {"status_code": 400, "body": None}, "error": {"message": "too long"}}
    odd = {"custom_id": "e", "response": {"status_code": 500, "body": "an error page"}, "error": None}
    file = tmp_path / "replies.jsonl"
    lines = [json.dumps(each) for each in (failed, expired, refused, odd)]
    file.write_text("\n".join([*lines, reply("c", "old"), reply("c", "new")]))
    assert {name: each.text for name, each in read_replies(file, SETTINGS).items()} == {"c": "new"}


@pytest.mark.parametrize(
    "content",
    [
        b"no JSON\n",
        b'{"custom_id": "a"}\n',
        b"[]\n",
        b'{"response": null}\n',
        b"\xff\xfe\n",
        b"[" * 100_000,
        b'{"custom_id": "a", "response": {"status_code": 200, "body": {"choices": 1}}}\n',
    ],
)
def test_other_files_are_refused(tmp_path, content):
    file = tmp_path / "replies.jsonl"
    file.write_bytes(content)
    with pytest.raises(InvalidInput, match=r"replies\.jsonl"):
        read_replies(file, SETTINGS)
    with pytest.raises(InvalidInput, match="missing"):
        read_replies(tmp_path / "missing", SETTINGS)


def test_a_file_of_requests_is_refused_as_replies(tmp_path):
    file = tmp_path / "requests.jsonl"
    file.write_text("".join(batch_lines({"a": request("One")}, SETTINGS)))
    with pytest.raises(InvalidInput, match="not the file of requests") as caught:
        read_replies(file, SETTINGS)
    assert "Line 1" in str(caught.value)
