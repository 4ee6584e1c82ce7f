"""Sentence models of other architectures than BERT and MPNet, run by transformers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from transformers import AutoConfig, AutoModel

from waygraph.core.errors import WeightsMissing
from waygraph.pipeline.encode.runtime.loading import misfits
from waygraph.pipeline.encode.runtime.progress_bars import no_progress_bar


def read_any_model(
    folder: Path, threads: int
) -> tuple[Callable[[NDArray[np.int64], NDArray[np.int32]], NDArray[np.float32]], int]:
    """Load a model.

    Parameters
    ----------
    folder
        Folder of the model.
    threads
        torch's thread count, a setting of the whole process. 0 leaves it unchanged.

    Returns
    -------
    tuple[Callable[[NDArray[np.int64], NDArray[np.int32]], NDArray[np.float32]], int]
        What computes token vectors, see `sentence_model.Forward`, and their size.

    Raises
    ------
    WeightsMissing
        If its tensors do not fit the architecture in config.json.
    """
    if threads:
        torch.set_num_threads(threads)
    config = AutoConfig.from_pretrained(folder, local_files_only=True)
    with no_progress_bar():
        model, report = AutoModel.from_pretrained(
            folder,
            config=config,
            local_files_only=True,
            use_safetensors=True,
            dtype=torch.float32,
            output_loading_info=True,
        )
    # transformers initialises missing tensors at random and continues: vectors would be noise.
    if wrong := misfits(report):
        raise WeightsMissing(f"The tensors are not those of config.json: {wrong}.")
    model.train(mode=False)

    def forward(ids: NDArray[np.int64], lengths: NDArray[np.int32]) -> NDArray[np.float32]:
        mask = torch.from_numpy((np.arange(ids.shape[1]) < lengths[:, None]).astype(np.int64))
        with torch.inference_mode():
            vectors = model(input_ids=torch.from_numpy(ids), attention_mask=mask).last_hidden_state
        found: NDArray[np.float32] = vectors.numpy()
        return found

    return forward, config.hidden_size
