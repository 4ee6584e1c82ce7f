"""Did a checkpoint fill the model that was made for it? transformers makes up what is missing, and goes on."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from transformers import PreTrainedModel

#: What transformers reports of a model that it loaded, see `PreTrainedModel.from_pretrained(output_loading_info=True)`.
Report = Mapping[str, Any]

_patching = threading.Lock()


def misfits(report: Report) -> dict[str, list[str]]:
    """Names of tensors by what is wrong with them: missing (made up), left over, of another shape; empty: all fit."""
    return {kind: sorted(map(str, names)) for kind, names in report.items() if names}


@contextmanager
def reports_of_loading() -> Iterator[list[Report]]:
    """Collect the report of every model that transformers loads meanwhile, for libraries that do not ask for it.

    Its log says the same, but only at levels that the environment may have switched off. Models that other threads
    load meanwhile are reported too.
    """
    reports: list[Report] = []
    original = PreTrainedModel.__dict__["from_pretrained"]

    def reporting(cls: type[PreTrainedModel], *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - transformers' own
        asked = kwargs.pop("output_loading_info", False)
        model, report = original.__func__(cls, *args, output_loading_info=True, **kwargs)
        reports.append(report)
        return (model, report) if asked else model

    with _patching:
        PreTrainedModel.from_pretrained = classmethod(reporting)  # type: ignore[method-assign, assignment]
        try:
            yield reports
        finally:
            PreTrainedModel.from_pretrained = original  # type: ignore[method-assign]
