"""Detection of ended sessions: the site shows its login page where it showed content before."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from http import HTTPStatus

from waygraph.core.errors import LoggedOut
from waygraph.core.urls import url_template
from waygraph.index.graph import similarity
from waygraph.pipeline.browser.page.snapshot import Snapshot
from waygraph.pipeline.browser.storage.session_file import SessionState, SignedIn
from waygraph.pipeline.explore.policies.hazard_urls import hazard_in_url
from waygraph.pipeline.explore.policies.login_addresses import has_login_address

#: Consecutive suspicious loads of different URLs that end a run. One such page may be a part of the site that asks for
#: the password again.
IN_A_ROW = 2
#: Jaccard similarity of structures from which on two pages are the same login page.
_SAME_PAGE_SIMILARITY = 0.8
#: Removed values that a warning names.
_SHOWN_VALUES = 3
_SAVE_ANEW = "Save a new one with `waygraph login`, or leave --storage-state out to map what visitors see."


_LOG_IN_AGAIN = (
    "Log in again with `waygraph login`, and continue with `waygraph index --resume`. If an action of the exploration"
    " ended the session, name it in a block rule (--rules); the run then starts again."
)


@dataclass(slots=True)
class LoginWatch:
    """Check of loads, in the order in which they happen. Pure: it reads snapshots only.

    A load is suspicious if it shows a password field (or the known login page) although the expected page had none:
    that content was available moments ago in the same session. Pages that always had a password field (a settings page,
    a sign-up form in the footer) are never suspicious.

    Attributes
    ----------
    site
        Key of the site, for messages.
    logged_in
        Whether the session is a user's. The session of a visitor cannot end, so nothing is suspicious.
    start
        The start page in the session; None: pages that were not loaded before are never suspicious.
    in_a_row
        Suspicious loads that end the run.
    """

    site: str
    logged_in: bool
    start: Snapshot | None = None
    in_a_row: int = IN_A_ROW
    _suspects: list[str] = field(default_factory=list)
    _unchecked: Snapshot | None = None
    _login_page: Snapshot | None = None
    _known_logins: set[str] = field(default_factory=set)
    """Links to a login that pages showed while the session went on."""

    def is_suspicious(self, expected: Snapshot | None, snapshot: Snapshot) -> bool:
        """Return whether a page looks like the login page in place of the expected page.

        Parameters
        ----------
        expected
            Page that the same URL or path showed before; None if it was not loaded before.
        snapshot
            Page that it shows now.

        Returns
        -------
        bool
            False if the session is a visitor's.
        """
        if not self.logged_in or expected is None or expected.password or snapshot.id == expected.id:
            return False
        if snapshot.status in {401, 403, 407} and expected.status < 400:
            return True
        if not snapshot.password:
            return False
        if (
            self._login_page is not None
            and similarity(self._login_page.structure, snapshot.structure) >= _SAME_PAGE_SIMILARITY
        ):
            return True
        has_other_url = url_template(snapshot.url) != url_template(expected.url)
        return has_other_url or similarity(expected.structure, snapshot.structure) < _SAME_PAGE_SIMILARITY

    def may_be_signed_out(self, requested: str, snapshot: Snapshot) -> bool:
        """Return whether a page that was loaded may be what the site shows to visitors, so that the session has ended.

        That is a page that asks for a login where another one was requested, or that links to a login, which the start
        page did not. Whether the session has ended, the start page tells: it is loaded again (`check_start`).

        Parameters
        ----------
        requested
            URL that was requested.
        snapshot
            Page that it led to.

        Returns
        -------
        bool
            False if the session is a visitor's, and for addresses of logins.
        """
        if not self.logged_in or self.start is None or has_login_address(requested):
            return False
        if snapshot.status == HTTPStatus.UNAUTHORIZED:
            return True
        is_led_away = _place(requested) != _place(snapshot.raw_url)
        if snapshot.password and (is_led_away or not self.start.password):
            return True
        return (is_led_away and has_login_address(snapshot.raw_url)) or self._offers_login_now(snapshot)

    def check_start(self, requested: str, snapshot: Snapshot, again: Snapshot) -> None:
        """Check the start page, which was loaded again in the restored session since another page is suspicious.

        Parameters
        ----------
        requested
            URL of the suspicious page.
        snapshot
            What it showed.
        again
            The start page.

        Raises
        ------
        LoggedOut
            If the start page is what visitors see.
        """
        start = self.start
        if start is None:
            return
        is_same = again.id == start.id and not self._offers_login_now(again)
        if not is_same and (self.is_suspicious(start, again) or self.may_be_signed_out(start.raw_url, again)):
            raise LoggedOut(
                f"{self.site} shows {snapshot.url} for {requested}, and its start page as to visitors:"
                " the session has ended.",
                hint=_LOG_IN_AGAIN,
            )
        # The session goes on: what this page links to is no sign of its end.
        self._suspects.clear()
        self._known_logins |= _login_targets(snapshot)

    def _offers_login_now(self, snapshot: Snapshot) -> bool:
        """Return whether a page offers a login, which the start page did not, nor a page while the session went on."""
        offered = _login_targets(snapshot) - self._known_logins
        return bool(offered) and self.start is not None and not _login_targets(self.start)

    def _may_be_of_visitors(self, expected: Snapshot, snapshot: Snapshot) -> bool:
        """Return whether a page offers a login, which neither it nor the start page did before."""
        return self.logged_in and self._offers_login_now(snapshot) and not _login_targets(expected)

    def take_unchecked(self) -> Snapshot | None:
        """Return the last suspicious page that `check` was given since the last call; None if there was none."""
        taken, self._unchecked = self._unchecked, None
        return taken

    def check(self, expected: Snapshot | None, snapshot: Snapshot) -> bool:
        """Check one load.

        Parameters
        ----------
        expected
            Page that the same URL or path showed before; None if it was not loaded before.
        snapshot
            Page that it shows now.

        Returns
        -------
        bool
            Whether the load is suspicious. The page then must not become a state.

        Raises
        ------
        LoggedOut
            If several loads in a row, of different URLs, showed the login page.
        """
        if expected is not None and self._may_be_of_visitors(expected, snapshot):
            self._unchecked = snapshot
            return True
        if not self.is_suspicious(expected, snapshot):
            if expected is not None and snapshot.id == expected.id:
                # Content that needs the session was loaded, so the session has not ended.
                self._suspects.clear()
            return False
        self._unchecked = snapshot
        self._login_page = self._login_page or (snapshot if snapshot.password else None)
        url = "" if expected is None else expected.url
        if url not in self._suspects:
            self._suspects.append(url)
        if len(self._suspects) >= self.in_a_row:
            raise LoggedOut(
                f"{self.site} shows its login page where it showed content before"
                f" ({', '.join(self._suspects)}): the session has ended.",
                hint=_LOG_IN_AGAIN,
            )
        return True


def check_start_page(
    requested: str,
    snapshot: Snapshot,
    given: SessionState | None,
    removed: Sequence[str] = (),
) -> str:
    """Check whether the start page looks as if the given session is valid.

    Parameters
    ----------
    requested
        Start URL.
    snapshot
        Page that it led to.
    given
        The session; None: there is none, and nothing is checked.
    removed
        Names of values of the session that the page removed, see `removed_secrets`.

    Returns
    -------
    str
        A warning with what is suspicious; empty if nothing is. A password field at the very URL that was requested
        may be that of a settings page, so it is no error.

    Raises
    ------
    LoggedOut
        If the start page leads to one that asks for a password.
    """
    if given is None:
        return ""
    if snapshot.password and url_template(requested) != url_template(snapshot.raw_url):
        raise LoggedOut(
            f"{requested} leads to {snapshot.url}, which asks for a password although a storage state was given:"
            " it has expired, or is another site's.",
            hint=_SAVE_ANEW,
        )
    reasons = sign_in_doubts(requested, snapshot, given)
    if removed:
        reasons.append(f"it removed what may be the login: {', '.join(removed[:_SHOWN_VALUES])}")
    if not reasons:
        return ""
    return (
        f"{requested} does not look signed in although a storage state was given: {'; '.join(reasons)}."
        f" The map may show what visitors see. {_SAVE_ANEW}"
    )


def sign_in_doubts(requested: str, snapshot: Snapshot, given: SessionState) -> list[str]:
    """Return what speaks against a valid session on the first page of a site, in clauses; empty: nothing does.

    Parameters
    ----------
    requested
        URL of the site.
    snapshot
        The page.
    given
        The session.

    Returns
    -------
    list of str
        The clauses.
    """
    signed_in = SignedIn.model_validate(given.get("signedIn") or {})
    reasons = []
    if snapshot.password and not signed_in.password:
        reasons.append("it shows a password field")
    if has_login_address(snapshot.raw_url) and not has_login_address(requested):
        reasons.append(f"it leads to {snapshot.url}, an address of a login")
    if signed_in.account and url_template(signed_in.url) == url_template(requested) and not _shows(snapshot, signed_in):
        reasons.append("it does not show the name of the account, which it showed after the login")
    return reasons


def _place(url: str) -> tuple[str, str]:
    """Return what two addresses of one page have in common: the template, and the route in the fragment."""
    return url_template(url), url.partition("#")[2]


def _login_targets(snapshot: Snapshot) -> set[str]:
    """Return the links of a page to a login. `/login?bye=1` ends a session and offers none."""
    targets = {candidate.action.target for candidate in snapshot.candidates if candidate.action.kind == "click"}
    links = (target for target in targets if target.startswith(("http:", "https:")))
    return {target for target in links if has_login_address(target) and hazard_in_url(target) is None}


def _shows(snapshot: Snapshot, signed_in: SignedIn) -> bool:
    names = (candidate.action.name for candidate in snapshot.candidates)
    texts = (snapshot.title, *(segment.text for segment in snapshot.segments), *names)
    return any(signed_in.account.casefold() in text.casefold() for text in texts)
