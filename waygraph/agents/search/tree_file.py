"""The file of a search: written as a whole after every change, read by the next process."""

from __future__ import annotations

from pathlib import Path

from pydantic import ValidationError

from waygraph.agents.search.tree import SearchTree
from waygraph.core.errors import InvalidInput
from waygraph.core.text import replace_surrogates


class TreeFile:
    """Keeps a search in a JSON file.

    Parameters
    ----------
    path
        The file; None: the search is kept in memory alone.
    """

    def __init__(self, path: Path | None) -> None:
        self._path = path

    def read(self, task: str) -> SearchTree | None:
        """Return the stored search of a task; None if there is no file.

        Parameters
        ----------
        task
            The task.

        Returns
        -------
        SearchTree or None
            The search.

        Raises
        ------
        InvalidInput
            If the file holds something else, or the search of another task.
        """
        if self._path is None or not self._path.exists():
            return None
        try:
            tree = SearchTree.model_validate_json(self._path.read_bytes())
        except ValidationError as error:
            raise InvalidInput(
                f"{self._path} is not a search that this version can read: {error.error_count()} problems.",
                hint="Remove the file to search anew.",
            ) from error
        if tree.task != task:
            raise InvalidInput(f"{self._path} is the search of another task: '{tree.task}'.")
        return tree

    def write(self, tree: SearchTree) -> None:
        """Replace the file. It appears complete or not at all: the process may be killed at any moment."""
        if self._path is None:
            return
        self._path.parent.mkdir(parents=True, exist_ok=True)
        unfinished = self._path.with_name(f".{self._path.name}.tmp")
        unfinished.write_text(replace_surrogates(tree.model_dump_json(indent=1)), encoding="utf-8")
        unfinished.replace(self._path)
