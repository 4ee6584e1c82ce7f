"""Reports of stored runs as HTML: numbers of the run, and a page per task with its trace.

`figures` adds up; `page`, `task_page` and `tree_view` make HTML; `write` writes the files.
Pages load nothing and have no script.
"""
