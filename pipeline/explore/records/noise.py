"""Noise: differences between snapshots of one state."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Noise:
    """Differences between two snapshots of a state: element hashes, and features (texts, elements by role and name)."""

    elements: tuple[str, ...] = ()
    features: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.elements or self.features)


NO_NOISE = Noise()
