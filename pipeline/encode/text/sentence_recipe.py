"""Read the recipe of a sentence model from a folder in sentence-transformers' layout.

Supported are a transformer, mean or first-token pooling, normalisation, prompts and a maximal length. A folder with
other layers is refused, since vectors computed without them would differ.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from waygraph.core.errors import InvalidInput, WeightsMissing

#: Maximal length in tokens, special tokens included, of a model that declares none. MiniLM was trained on this length.
MAX_TOKENS = 256
OTHER = (
    "Use a sentence model whose modules are a transformer, mean or cls pooling, and normalisation (docs/encoders.md); "
    "multi-vector models run as --encoder st:NAME."
)

Pooling = Literal["mean", "cls"]

_POOLINGS: dict[str, Pooling] = {"mean": "mean", "cls": "cls"}
_OLD_NAMES = {"pooling_mode_mean_tokens": "mean", "pooling_mode_cls_token": "cls"}


@dataclass(frozen=True, slots=True)
class SentenceRecipe:
    """Everything besides parameters and tokenizer that vectors depend on. Defaults are those of the published MiniLM.

    Attributes
    ----------
    pooling
        How token vectors become one vector.
    max_tokens
        Longer texts are truncated. Special tokens count.
    query_prompt
        Prefix of queries.
    document_prompt
        Prefix of texts of states.
    """

    pooling: Pooling = "mean"
    max_tokens: int = MAX_TOKENS
    query_prompt: str = ""
    document_prompt: str = ""


def read_recipe(folder: Path) -> SentenceRecipe:
    """Read `modules.json` and the files beside it. Without `modules.json`, return the defaults.

    Parameters
    ----------
    folder
        Folder of the model.

    Returns
    -------
    SentenceRecipe
        How its vectors are made.

    Raises
    ------
    InvalidInput
        If the model needs a layer, a pooling or a preparation that is not supported.
    WeightsMissing
        If a file cannot be read.
    """
    config = _json(folder / "config.json")
    positions = config.get("max_position_embeddings")
    if not (folder / "modules.json").is_file():
        return SentenceRecipe(max_tokens=min(MAX_TOKENS, positions) if isinstance(positions, int) else MAX_TOKENS)
    modules = _json(folder / "modules.json", kind=list)
    try:
        kinds = [(str(module["type"]).rpartition(".")[2], str(module["path"])) for module in modules]
    except (KeyError, TypeError) as error:
        raise WeightsMissing(f"{folder / 'modules.json'} names no modules: {error!r}.", hint=OTHER) from error
    names = [kind for kind, _ in kinds]
    if names not in (["Transformer", "Pooling"], ["Transformer", "Pooling", "Normalize"]) or kinds[0][1]:
        raise InvalidInput(
            f"{folder} is made of {', '.join(names)}, which the encoder 'text' does not run.", hint=OTHER
        )
    transformer = _json(folder / "sentence_bert_config.json", missing_ok=True)
    if transformer.get("do_lower_case") or transformer.get("transformer_task", "feature-extraction") != (
        "feature-extraction"
    ):
        raise InvalidInput(f"{folder} prepares texts in a way that the encoder 'text' does not.", hint=OTHER)
    query, document = _prompts(_json(folder / "config_sentence_transformers.json", missing_ok=True), folder)
    limits = (
        transformer.get("max_seq_length"),
        _json(folder / "tokenizer_config.json", missing_ok=True).get("model_max_length"),
    )
    declared = next((limit for limit in limits if isinstance(limit, int)), positions)
    known = [limit for limit in (declared, positions) if isinstance(limit, int) and limit > 0]
    return SentenceRecipe(
        pooling=_pooling(_json(folder / kinds[1][1] / "config.json"), folder),
        max_tokens=min(known, default=MAX_TOKENS),
        query_prompt=query,
        document_prompt=document,
    )


def _pooling(config: Mapping[str, Any], folder: Path) -> Pooling:
    old = [_OLD_NAMES.get(key, key) for key, on in config.items() if key.startswith("pooling_mode_") and on]
    modes = config.get("pooling_mode", old or "mean")
    modes = [modes] if isinstance(modes, str) else list(modes)
    if len(modes) != 1 or modes[0] not in _POOLINGS or not config.get("include_prompt", True):
        left_out = "" if config.get("include_prompt", True) else ", without the prompt"
        raise InvalidInput(
            f"{folder} pools by {', '.join(map(str, modes))}{left_out}, which the encoder 'text' does not.", hint=OTHER
        )
    return _POOLINGS[modes[0]]


def _prompts(config: Mapping[str, Any], folder: Path) -> tuple[str, str]:
    """Return the prompts of queries and of documents: by the task's name, else the default one, as the library does."""
    prompts = config.get("prompts") or {}
    if not isinstance(prompts, Mapping) or not all(isinstance(prompt, str | None) for prompt in prompts.values()):
        raise WeightsMissing(
            f"{folder / 'config_sentence_transformers.json'} has prompts that are not strings.", hint=OTHER
        )
    default = config.get("default_prompt_name")

    def first(names: Sequence[str]) -> str:
        return next((prompts[name] for name in (*names, default) if name in prompts), None) or ""

    return first(["query"]), first(["document", "passage", "corpus"])


def _json(file: Path, *, kind: type = dict, missing_ok: bool = False) -> Any:  # noqa: ANN401 - JSON
    if missing_ok and not file.exists():
        return kind()
    try:
        content = json.loads(file.read_bytes())
    except (OSError, ValueError) as error:
        raise WeightsMissing(f"{file} cannot be read: {error}.", hint=OTHER) from error
    if not isinstance(content, kind):
        raise WeightsMissing(f"{file} holds no JSON {'array' if kind is list else 'object'}.", hint=OTHER)
    return content
