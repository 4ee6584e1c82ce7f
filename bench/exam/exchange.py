"""A chat model whose replies come as files: from a model without an endpoint, or from a person.

    FOLDER/forms/HASH.txt      instructions and JSON schema, once for all requests that share them
    FOLDER/asked/NAME.txt      a request: the name of its form, and the question
    FOLDER/replies/NAME.txt    its reply, written under another name and renamed, so that it appears complete

Whoever answers sees nothing but these texts. Tokens are those of o200k_base, counted with rs-bpe
(`pip install rs-bpe`): all messages, and the schema.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import time
from pathlib import Path

from rs_bpe.bpe import openai

from waygraph.agents.models.chat import ChatReply, ChatRequest, ImagePart
from waygraph.core.errors import ModelUnavailable
from waygraph.core.schemas import UsageModel

_FORMS, _ASKED, _REPLIES = "forms", "asked", "replies"
_LOOK_EVERY_S = 0.5
_HASH_DIGITS = 8


class FolderModel:
    """Writes requests to a folder and waits for their replies.

    Parameters
    ----------
    folder
        The folder.
    name
        Name of the model in records.
    label
        Beginning of the names of its requests, such as `webnavigator-101`.
    patience_s
        Longest wait for one reply, in seconds.
    """

    def __init__(self, folder: Path, name: str, label: str, *, patience_s: float) -> None:
        self._folder = folder
        self._name = name
        self._label = label
        self._patience_s = patience_s
        self._tokenizer = openai.o200k_base()
        for part in (_FORMS, _ASKED, _REPLIES):
            (folder / part).mkdir(parents=True, exist_ok=True)

    async def complete(self, request: ChatRequest) -> ChatReply:
        """Return the reply; see `ChatModel.complete`. Images cannot be asked about."""
        if any(isinstance(part, ImagePart) for message in request.messages for part in message.parts):
            raise ModelUnavailable("A folder of texts takes no images.")
        began = time.monotonic()
        system, *others = request.messages
        schema = json.dumps(request.json_format.schema) if request.json_format is not None else ""
        form = self._write_form(f"{system.text}\n\nJSON schema of the reply:\n{schema}")
        question = "\n\n".join(
            message.text if message.role == "user" else f"[{message.role}]\n{message.text}" for message in others
        )
        digest = hashlib.sha256(f"{form}\n{question}\n{request.seed}".encode()).hexdigest()[:_HASH_DIGITS]
        name = f"{self._label}-{digest}"  # a resumed task asks the same under the same name
        asked, reply = self._folder / _ASKED / f"{name}.txt", self._folder / _REPLIES / f"{name}.txt"
        asked.write_text(f"form {form}\n\n{question}", encoding="utf-8")
        while not reply.exists():
            if time.monotonic() - began > self._patience_s:
                raise ModelUnavailable(f"Nobody answered {asked.name}.")
            await asyncio.sleep(_LOOK_EVERY_S)
        text = reply.read_text(encoding="utf-8")
        shown = "\n".join([*(message.text for message in request.messages), schema])
        usage = UsageModel(
            model=self._name,
            calls=1,
            input_tokens=len(self._tokenizer.encode(shown)),
            output_tokens=len(self._tokenizer.encode(text)),
            seconds=round(time.monotonic() - began, 3),
        )
        return ChatReply(text, usage)

    def _write_form(self, text: str) -> str:
        name = hashlib.sha256(text.encode()).hexdigest()[:_HASH_DIGITS]
        (self._folder / _FORMS / f"{name}.txt").write_text(text, encoding="utf-8")
        return name
