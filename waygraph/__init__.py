"""The front door: CLI, settings, errors, HTTP schemas and the Python SDK. Importing it needs neither torch nor ray."""

from __future__ import annotations

from importlib import import_module, metadata
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from waygraph.client import AsyncServiceMap, ServiceMap
    from waygraph.errors import WaygraphError
    from waygraph.local import StoreMap
    from waygraph.sdk import AsyncWaygraph, Waygraph
    from waygraph.settings import Settings
    from waygraph.source import MapSource

    __version__: str

__all__ = [
    "AsyncServiceMap",
    "AsyncWaygraph",
    "MapSource",
    "ServiceMap",
    "Settings",
    "StoreMap",
    "Waygraph",
    "WaygraphError",
    "__version__",
]

#: Where each public name is defined. They are imported when first used (PEP 562), so that importing costs nothing.
_HOME = {
    "AsyncServiceMap": "waygraph.client",
    "AsyncWaygraph": "waygraph.sdk",
    "MapSource": "waygraph.source",
    "ServiceMap": "waygraph.client",
    "Settings": "waygraph.settings",
    "StoreMap": "waygraph.local",
    "Waygraph": "waygraph.sdk",
    "WaygraphError": "waygraph.errors",
}


def __getattr__(name: str) -> object:
    if name == "__version__":
        value: object = metadata.version("waygraph")
    elif name in _HOME:
        value = getattr(import_module(_HOME[name]), name)
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
