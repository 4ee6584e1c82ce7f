"""Selectors: choose which of the retrieved states is meant. All implement one protocol."""

from waygraph.serve.select.protocol import Choice, RetrievedState, SelectionQuery, Selector
from waygraph.serve.select.registry import create_selector

__all__ = ["Choice", "RetrievedState", "SelectionQuery", "Selector", "create_selector"]
