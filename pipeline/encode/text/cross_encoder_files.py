"""Files of a cross-encoder, found without importing torch."""

from __future__ import annotations

from pathlib import Path

from waygraph.core.errors import WeightsMissing
from waygraph.pipeline.encode.runtime.model_files import find_model

#: Files without which a folder holds no cross-encoder.
FILES = ("config.json", "model.safetensors", "tokenizer.json")
WHAT_TO_RUN = (
    "WAYGRAPH_SERVE__RERANKER names a folder with config.json, model.safetensors and tokenizer.json, or a repository "
    "on the hub, of a cross-encoder with one score per pair; empty: searches are not reranked."
)


def find_cross_encoder(name: str) -> Path:
    """Return the folder of a cross-encoder.

    Parameters
    ----------
    name
        A folder, or a repository on the hub.

    Returns
    -------
    Path
        Folder with all of `FILES`.

    Raises
    ------
    WeightsMissing
        If there is no such folder and no such repository, or a file is missing.
    """
    folder = find_model(name, hint=WHAT_TO_RUN)
    if missing := [file for file in FILES if not (folder / file).is_file()]:
        raise WeightsMissing(f"The reranker in {folder} lacks {', '.join(missing)}.", hint=WHAT_TO_RUN)
    return folder
