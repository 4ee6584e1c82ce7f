"""Addresses at which people log in, recognised by the words of their segments."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

#: A segment of an address at which people log in.
_LOGIN_SEGMENT = re.compile(
    r"(?:wp-|user|account|auth|admin)?[-_.]?(?:log[-_]?in|log[-_]?on|sign[-_]?in|anmelden|connexion|entrar|accedi"
    r"|inloggen|logga[-_]?in|zaloguj)(?:\.\w+)?|sso|oauth2?|authorize|authenticate|auth",
    re.IGNORECASE,
)


def has_login_address(url: str) -> bool:
    """Return whether a segment of the path, or of a route in the fragment, is one of a login.

    >>> has_login_address("https://x.example/users/sign_in?next=/"), has_login_address("https://x.example/logins-explained")
    (True, False)
    """
    parts = urlsplit(url)
    return any(_LOGIN_SEGMENT.fullmatch(segment) for segment in f"{parts.path}/{parts.fragment}".split("/"))
