"""Detect checkpoints that do not fit their model. transformers initialises missing tensors at random and continues."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from transformers import PreTrainedModel

#: The report of `PreTrainedModel.from_pretrained(output_loading_info=True)`.
Report = Mapping[str, Any]

_patching = threading.Lock()


def misfits(report: Report) -> dict[str, list[str]]:
    """Return tensor names by problem: missing, unexpected, of another shape. Empty if all tensors fit."""
    return {kind: sorted(map(str, names)) for kind, names in report.items() if names}


@contextmanager
def reports_of_loading() -> Iterator[list[Report]]:
    """Collect the loading reports of all models that transformers loads inside the block.

    For libraries that load models without requesting the report. The log of transformers has the same information, but
    the environment may disable it. Models that other threads load at the same time are included.
    """
    reports: list[Report] = []
    original = PreTrainedModel.__dict__["from_pretrained"]

    def reporting(cls: type[PreTrainedModel], *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - transformers' own
        requested = kwargs.pop("output_loading_info", False)
        model, report = original.__func__(cls, *args, output_loading_info=True, **kwargs)
        reports.append(report)
        return (model, report) if requested else model

    with _patching:
        PreTrainedModel.from_pretrained = classmethod(reporting)  # type: ignore[method-assign, assignment]
        try:
            yield reports
        finally:
            PreTrainedModel.from_pretrained = original  # type: ignore[method-assign]
