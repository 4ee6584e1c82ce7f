"""Generated descriptions among the texts that a state is encoded by, and those that a newer version keeps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from waygraph.index.graph import Description, Observation


def with_descriptions(
    observations: Mapping[str, Observation], descriptions: Mapping[str, Description]
) -> dict[str, Observation]:
    """Return the observations by node id, those of described states with their generated texts."""
    return {
        node_id: replace(seen, generated_texts=descriptions[node_id].texts) if node_id in descriptions else seen
        for node_id, seen in observations.items()
    }


def description_key(observation: Observation) -> str:
    """Return what a description depends on: the content of the state itself, without what was derived from the map."""
    return replace(observation, anchor_texts=(), generated_texts=()).content_hash


def kept_descriptions(
    earlier: Mapping[str, Description], observations: Mapping[str, Observation]
) -> dict[str, Description]:
    """Return the descriptions that still hold, by node id: those of states that show what was described.

    Parameters
    ----------
    earlier
        Descriptions of an earlier version.
    observations
        What the states of the newer one show.

    Returns
    -------
    dict[str, Description]
        Of states with the same content, also if their ids changed.
    """
    if not earlier:
        return {}
    by_key = {each.key: each for each in earlier.values()}
    keys = {node_id: description_key(seen) for node_id, seen in observations.items()}
    return {node_id: by_key[key] for node_id, key in keys.items() if key in by_key}
