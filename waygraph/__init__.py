"""waygraph: maps of websites that agents search and navigate.

The public names are imported on first use, so that `import waygraph` loads neither torch nor ray.
"""

from __future__ import annotations

from importlib import import_module, metadata
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from waygraph.client.map_source import MapSource
    from waygraph.client.service import AsyncServiceMap, ServiceMap
    from waygraph.core.errors import WaygraphError
    from waygraph.core.settings import Settings
    from waygraph.sdk.facade import AsyncWaygraph, Waygraph
    from waygraph.sdk.local import StoreMap

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

#: Module of each public name, which is imported when the name is first used (PEP 562).
_MODULES = {
    "AsyncServiceMap": "waygraph.client.service",
    "AsyncWaygraph": "waygraph.sdk.facade",
    "MapSource": "waygraph.client.map_source",
    "ServiceMap": "waygraph.client.service",
    "Settings": "waygraph.core.settings",
    "StoreMap": "waygraph.sdk.local",
    "Waygraph": "waygraph.sdk.facade",
    "WaygraphError": "waygraph.core.errors",
}


def __getattr__(name: str) -> object:
    if name == "__version__":
        value: object = metadata.version("waygraph")
    elif name in _MODULES:
        value = getattr(import_module(_MODULES[name]), name)
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
