"""Which command lines does the CLI understand? For what names them outside of the code: manifests, images, pages."""

from waygraph.cli.app import command

#: Commands that are named before they are there. It must become empty: a test fails as soon as one of them is there.
COMING = frozenset({"refresh", "diff", "history", "rollback", "gc", "store"})


def is_there(words):
    root = command()
    return words[1] in root.commands


def parse_command(words):
    """Parse like the shell would, without running anything; gives the parameters, or nothing for one of `COMING`."""
    assert words[0] == "waygraph"
    if words[1] in COMING and not is_there(words):
        return None
    return _parse(command(), "waygraph", list(words[1:]), None)


def _parse(group, name, words, above):
    with group.make_context(name, words[:1], parent=above, resilient_parsing=True) as context:
        name, found, _ = group.resolve_command(context, words[:1])
        if hasattr(found, "commands"):
            return _parse(found, name, words[1:], context)
        return found.make_context(name, words[1:], parent=context).params
