"""Parse waygraph command lines, for tests of manifests, images and pages that contain such."""

from waygraph.cli.app import command


def parse_command(words):
    """Parse a command line without running it; return its parameters."""
    assert words[0] == "waygraph"
    return _parse(command(), "waygraph", list(words[1:]), None)


def _parse(group, name, words, above):
    with group.make_context(name, words[:1], parent=above, resilient_parsing=True) as context:
        name, found, _ = group.resolve_command(context, words[:1])
        if hasattr(found, "commands"):
            return _parse(found, name, words[1:], context)
        return found.make_context(name, words[1:], parent=context).params
