"""Sites that an agent may navigate by map."""

from __future__ import annotations

from collections.abc import Sequence

from waygraph.agents.actions.types import ActionSyntaxError


def check_site(site: str, mapped: Sequence[str]) -> None:
    """Raise `ActionSyntaxError` if a site has no map.

    Parameters
    ----------
    site
        Key of the site, as a model wrote it.
    mapped
        Keys of the sites that have maps.

    Raises
    ------
    ActionSyntaxError
        If the site is none of them; the message lists those for the model.
    """
    if site not in mapped:
        raise ActionSyntaxError(f"There is no map of '{site}'; write one of these sites: {', '.join(mapped)}.")
