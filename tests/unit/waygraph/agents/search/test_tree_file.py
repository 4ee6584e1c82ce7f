"""The file of a search."""

import pytest

from tests.unit.waygraph.agents.search.trees import click, grown, put, stop
from waygraph.agents.search.tree_file import TreeFile
from waygraph.core.errors import InvalidInput


def test_a_search_is_read_as_it_was_written(tmp_path):
    tree = grown(depth=3)
    put(tree, 2, click("x", is_destructive=True), 0.5)
    put(tree, 2, stop("an answer"), 0.25)
    file = TreeFile(tmp_path / "deep" / "tree.json")
    assert file.read("a task") is None
    file.write(tree)
    assert file.read("a task") == tree
    assert [each.name for each in (tmp_path / "deep").iterdir()] == ["tree.json"]


def test_the_search_of_another_task_and_other_files_are_refused(tmp_path):
    file = TreeFile(tmp_path / "tree.json")
    file.write(grown())
    with pytest.raises(InvalidInput, match="another task"):
        file.read("another")
    (tmp_path / "tree.json").write_text('{"version": 2}')
    with pytest.raises(InvalidInput, match="not a search"):
        file.read("a task")


def test_without_a_path_nothing_is_kept():
    file = TreeFile(None)
    file.write(grown())
    assert file.read("a task") is None
