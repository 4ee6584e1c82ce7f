"""Stored runs in the formats of other scorers.

`webarena_verified` and `online_mind2web` convert one task, as pure functions. `write` writes the files of a run.
"""
