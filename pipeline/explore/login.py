"""Has the session ended? Watches for a site that shows its login page where it showed content before."""

from __future__ import annotations

from dataclasses import dataclass, field

from index.graph import similarity, url_template
from pipeline.browser.snapshot import Snapshot
from waygraph.errors import LoggedOut

#: One such page may be a part of the site that wants the password again; this many in a row are a lost session.
IN_A_ROW = 2
#: Two looks at one login page are at least so similar (Jaccard over element hashes).
_SAME_PAGE = 0.8


@dataclass(slots=True)
class LoginWatch:
    """Judges what loads show, in the order in which they happen. Pure: it only looks at snapshots.

    A load is suspicious when it shows a password field (or the login page seen before) although what it was expected to
    show had none: that content was there only moments ago, in the same session. Pages that always had a password field
    (a settings page, a sign-up form in the footer) never are.

    Parameters
    ----------
    site : for messages.
    logged_in : whether the session is a user's. A visitor's has nothing to lose, so nothing is ever suspicious.
    """

    site: str
    logged_in: bool
    in_a_row: int = IN_A_ROW
    _suspects: list[str] = field(default_factory=list)
    _login_page: Snapshot | None = None

    def suspicious(self, expected: Snapshot | None, seen: Snapshot) -> bool:
        """Whether `seen` looks like the login page in place of `expected`, which the same URL or way showed before."""
        if not self.logged_in or expected is None or expected.password or seen.id == expected.id:
            return False
        if seen.status in {401, 403, 407} and expected.status < 400:
            return True
        if not seen.password:
            return False
        if self._login_page is not None and similarity(self._login_page.structure, seen.structure) >= _SAME_PAGE:
            return True
        moved = url_template(seen.url) != url_template(expected.url)
        return moved or similarity(expected.structure, seen.structure) < _SAME_PAGE

    def check(self, expected: Snapshot | None, seen: Snapshot) -> bool:
        """Judge one load; returns whether it is suspicious: then it must not become a state.

        Raises
        ------
        LoggedOut
            When several loads in a row, of different URLs, showed the login page.
        """
        if not self.suspicious(expected, seen):
            if expected is not None and seen.id == expected.id:
                # Content that needs the session came: the session is alive.
                self._suspects.clear()
            return False
        self._login_page = self._login_page or (seen if seen.password else None)
        wanted = "" if expected is None else expected.url
        if wanted not in self._suspects:
            self._suspects.append(wanted)
        if len(self._suspects) >= self.in_a_row:
            raise LoggedOut(
                f"{self.site} shows its login page where it showed content before"
                f" ({', '.join(self._suspects)}): the session has ended.",
                hint="Log in anew with `waygraph login`, and go on with `waygraph index --resume`. If an action of the"
                " exploration ended it, name that in a block rule (--rules); the run begins anew then.",
            )
        return True


def check_start(asked: str, seen: Snapshot, *, logged_in: bool) -> None:
    """Refuse to begin with a storage state that is no longer good.

    A page that has a password field under the very URL that was asked for may be a page of settings, and is taken.

    Raises
    ------
    LoggedOut
        When the start page leads to one that asks for a password although a storage state was given.
    """
    if logged_in and seen.password and url_template(asked) != url_template(seen.raw_url):
        raise LoggedOut(
            f"{asked} leads to {seen.url}, which asks for a password although a storage state was given:"
            " it has expired, or is another site's.",
            hint="Save a new one with `waygraph login`, or leave --storage-state out to map what visitors see.",
        )
