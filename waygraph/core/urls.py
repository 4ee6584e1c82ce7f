"""Canonical URLs, site keys and masking of secrets in URLs (RFC 3986, section 6)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fnmatch import fnmatchcase
from operator import itemgetter
from typing import Literal
from urllib.parse import parse_qsl, quote, unquote_to_bytes, urlencode, urlsplit, urlunsplit

from waygraph.core.errors import InvalidInput
from waygraph.core.text import replace_surrogates

DEFAULT_PORTS = {"http": 80, "https": 443}

#: Query parameters (globs) that identify a visit or a campaign, never a page.
TRACKING_PARAMETERS = ("utm_*", "gclid", "fbclid", "msclkid", "dclid", "mc_cid", "mc_eid", "_ga", "_gl")
#: Query parameters (globs) whose value grants access: sessions, tokens, signatures, one-time codes.
SECRET_PARAMETERS = (
    "access_token", "id_token", "refresh_token", "auth_token", "authtoken", "oauth_token", "oauth_verifier",
    "token", "session_token", "session_id", "*sessionid", "*sessid", "sid", "jwt", "otp", "api_key", "apikey",
    "api-key", "secret", "client_secret", "password", "passwd", "pwd", "authorization", "samlresponse",
    "samlrequest", "signature", "sig", "x-amz-signature", "x-amz-security-token", "x-goog-signature", "_wpnonce",
)  # fmt: skip
_HEX = re.compile(r"(?:0x)?[0-9a-f]{8,}", re.IGNORECASE)
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
_RUN = re.compile(r"[A-Za-z0-9]{12,}")
_SWITCH = re.compile(r"[0-9](?=[A-Za-z])|[A-Za-z](?=[0-9])")

#: A number of this many digits or more is a timestamp or a drawn number, not a count or a page number.
_RANDOM_DIGITS = 9
#: A word of 12 characters or more that changes between letters and digits this often is random.
_RANDOM_SWITCHES = 3
#: Those of `SECRET_PARAMETERS` that name a page on as many sites, if their value is a word or a number: `?sid=sport`.
SECRET_IF_RANDOM = ("token", "sid", "sig", "signature")
#: Next to one of these parameters, `code` is the one-time code of an OAuth redirect (RFC 6749, 4.1.2).
_OAUTH_PARAMETERS = frozenset({"state", "iss", "session_state", "scope"})
#: Text in place of a secret.
MASK = "***"


#: What of a URL's fragment identifies a page, see `UrlPolicy`.
FragmentRule = Literal["route", "keep", "drop"]


@dataclass(frozen=True, slots=True)
class UrlPolicy:
    """The parts of a URL that identify a page.

    Attributes
    ----------
    fragment
        `route` keeps fragments that name views of an application (`is_route`), `keep` all, `drop` none.
    drop_parameters
        Globs of query parameters to leave out. Those of `SECRET_IF_RANDOM` are left out if their values look random.
    raw
        Use the URL as the browser reports it, as the paper does.
    """

    fragment: FragmentRule = "route"
    drop_parameters: tuple[str, ...] = TRACKING_PARAMETERS
    raw: bool = False


#: Two fragments of a page may show two views of it, also if they do not look like routes.
WITH_FRAGMENT = UrlPolicy(fragment="keep")


def normalize_url(url: str, policy: UrlPolicy = UrlPolicy()) -> str:
    """Return the canonical form of `url`: idempotent, and equal for URLs of the same page under `policy`.

    Scheme and host are lower-cased (international hosts in their ASCII form), default ports dropped, the query sorted
    by key, percent-encoding unified. Values of one key keep their order: `?by=name&by=date` and its reverse are two
    pages. URLs that are malformed or not http(s) are returned unchanged.

    The result is what URLs are compared by. It is never requested: servers may refuse it, see `linked_url`.

    >>> normalize_url("HTTP://Shop.example:80/a?b=2&a=1&utm_source=x#top")
    'http://shop.example/a?a=1&b=2'
    """
    if policy.raw:
        return url
    url = replace_surrogates(url)  # browsers read lone surrogates as U+FFFD (WHATWG URL, "UTF-8 percent-encode")
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return url
    scheme = parts.scheme.lower()
    host = _ascii_host(parts.hostname or "")
    if scheme not in DEFAULT_PORTS or not host:
        return url
    netloc = host if port in {None, DEFAULT_PORTS[scheme]} else f"{host}:{port}"
    # Bytes, not text: servers may percent-encode other encodings than UTF-8. An encoded slash is part of a path
    # segment; decoding it would give another path.
    path = "%2F".join(quote(unquote_to_bytes(piece), safe=_PATH_SAFE) for piece in _ENCODED_SLASH.split(parts.path))
    pairs = [
        (key, value)
        for key, value in parse_qsl(parts.query, keep_blank_values=True, errors="surrogateescape")
        if not any(fnmatchcase(key, glob) for glob in policy.drop_parameters)
        or (key in SECRET_IF_RANDOM and not is_random_token(value))
    ]
    fragment = parts.fragment
    if policy.fragment == "drop" or (policy.fragment == "route" and not is_route(fragment)):
        fragment = ""
    query = urlencode(sorted(pairs, key=itemgetter(0)), errors="surrogateescape")
    return urlunsplit((scheme, netloc, path or "/", query, fragment))


def is_random_token(text: str) -> bool:
    """Return whether `text` looks random or like a timestamp, and so is no word, small number or slug.

    >>> [is_random_token(t) for t in ("9f86d081884c7d65", "1718031234567", "red-shirt-2024", "17")]
    [True, True, False, False]
    """
    if _UUID.fullmatch(text):
        return True
    if text.isdigit():
        return len(text) >= _RANDOM_DIGITS
    if _HEX.fullmatch(text):
        return any(c.isdigit() for c in text) and any(c.isalpha() for c in text)
    return any(len(_SWITCH.findall(run)) >= _RANDOM_SWITCHES for run in _RUN.findall(text))


def linked_url(url: str, policy: UrlPolicy = UrlPolicy()) -> str:
    """Return the URL to request for the page that `url` names: as it is written, without a fragment that names no page.

    >>> linked_url("http://shop.example/?b=2&a=1#top"), linked_url("http://shop.example/?wsdl#/route")
    ('http://shop.example/?b=2&a=1', 'http://shop.example/?wsdl#/route')
    """
    address, mark, _ = url.partition("#")
    return address if mark and "#" not in normalize_url(url, policy) else url


_ROUTE = re.compile(r"[/!]|[?&]?[\w.:\[\]-]{1,60}=[^=]")


def is_route(fragment: str) -> bool:
    """Return whether a fragment names a view of an application: a route of a client-side router, or parameters.

    Other fragments name a part of a page, to which the browser scrolls.

    >>> [is_route(fragment) for fragment in ("/list", "!about", "tab=orders", "View:uri=x", "orders", "fn:1")]
    [True, True, True, True, False, False]
    >>> is_route("state=9f&session_state=ab&code=zz")
    False
    >>> [is_route(fragment) for fragment in (":~:text=word", "access_token=x&state=y", "utm_source=mail")]
    [False, False, False]
    """
    if not _ROUTE.match(fragment) or fragment.startswith(":~:"):
        return False
    if fragment[0] in "/!":
        return True
    names = {key.lower() for key, _ in parse_qsl(fragment.lstrip("?&"))}
    if "session_state" in names or ("state" in names and names & {"code", "error", "iss"}):
        return False  # the answer of an OpenID provider, which differs each time
    no_view = (*SECRET_PARAMETERS, *TRACKING_PARAMETERS)
    return not any(fnmatchcase(name, glob) for name in names for glob in no_view)


_PATH_SAFE = "/:@!$&'()*+,;=~-._"
_ENCODED_SLASH = re.compile("%2f", re.IGNORECASE)


def _ascii_host(host: str) -> str:
    name = host.rstrip(".")
    if ":" in name:
        return f"[{name}]"
    try:
        return name.encode("idna").decode().lower()
    except UnicodeError:
        return name


_HOST = re.compile(r"^[A-Za-z0-9_](?:[A-Za-z0-9_.-]*[A-Za-z0-9_])?\.?$")
_CREDENTIALS = re.compile(r"(?!mailto:)(?:(?:[a-z][a-z0-9+.-]*:)?//)?[^/?#\\]*@", re.IGNORECASE)
_LOOPBACK = re.compile(r"localhost|127\.|\[::1\]")
_PORT = re.compile(r"[^/?#]*:([0-9]{1,5})(?![^/?#])")
_NOT_IN_URLS = re.compile(r"[\x00-\x1f\x7f\\]")


def parse_start_url(text: str) -> str:
    """Validate a URL that a user typed, and add a missing scheme.

    Parameters
    ----------
    text
        A URL, or one without a scheme. The scheme is then that of a default port in the URL; without one `http` for
        loopback hosts, and `https` for all others.

    Returns
    -------
    str
        The URL with a scheme and at least the path `/`.

    Raises
    ------
    InvalidInput
        If the text is not an http(s) URL with a host, or holds credentials.
    """
    url = text.strip()
    if _CREDENTIALS.match(url):
        # The URL is not repeated: messages may end up in a log.
        raise InvalidInput(
            "The URL contains a user name or password, which would end up in maps and reports.",
            hint="Remove it from the URL and pass it with --basic-auth-file or WAYGRAPH_EXPLORE__BASIC_AUTH.",
        )
    if _NOT_IN_URLS.search(url):
        # Browsers read "\" as "/" and drop control characters: they would load another host than the one parsed here.
        raise InvalidInput(f"'{text}' contains a backslash or a control character.", hint="Percent-encode it.")
    if "://" not in url:
        if re.match(r"^[a-z][a-z0-9+.-]*:(?!\d)", url, re.IGNORECASE):
            raise InvalidInput(f"'{text}' is not a web address.", hint="Use http:// or https:// URLs.")
        url = f"{_scheme_for(url)}://{url}"
    try:
        parts = urlsplit(url)
        port = parts.port
        # A host that is not valid raises UnicodeError, which is a ValueError.
        host = parts.hostname or ""
        ascii_host = host if ":" in host else host.encode("idna").decode()
    except ValueError as error:
        raise InvalidInput(f"'{text}' is not a valid URL: {error}.", hint="Example: https://example.org/") from error
    if parts.scheme.lower() not in DEFAULT_PORTS:
        raise InvalidInput(
            f"'{text}' has the scheme '{parts.scheme}'.", hint="Only http:// and https:// URLs can be mapped."
        )
    if not host or (":" not in host and not _HOST.match(ascii_host)) or port == 0:
        raise InvalidInput(f"'{text}' has no host.", hint="Example: https://example.org/")
    return url if parts.path or parts.query else f"{url}/" if not parts.fragment else url


def _scheme_for(address: str) -> str:
    """Return the scheme for a URL that was written without one."""
    port = _PORT.match(address)
    named = next((scheme for scheme, default in DEFAULT_PORTS.items() if port and int(port[1]) == default), "")
    return named or ("http" if _LOOPBACK.match(address) else "https")


def mask_secrets(url: str) -> str:
    """Return the URL with credentials and the values of `SECRET_PARAMETERS` (query and fragment) replaced by `***`.

    A URL without secrets is returned unchanged, byte for byte.

    >>> mask_secrets("https://u:p@x/cb?code=1&state=2&a=3#access_token=4")
    'https://***@x/cb?code=***&state=2&a=3#access_token=***'
    """
    if "=" not in url and "@" not in url and ";" not in url:
        return url
    head, fragment_mark, fragment = url.partition("#")
    address, query_mark, query = head.partition("?")
    address = re.sub(r"^([a-z][a-z0-9+.-]*://)[^/@]*@", rf"\1{MASK}@", address, flags=re.IGNORECASE)
    # Path parameters (RFC 3986, section 3.3), in which Java servers put session ids.
    address = re.sub(r"(;[A-Za-z]*sessionid=)[^/;?#]*", rf"\1{MASK}", address, flags=re.IGNORECASE)
    before, inner, after = fragment.partition("?")
    fragment = f"{_mask_pairs(before)}{inner}{_mask_pairs(after)}"
    return f"{address}{query_mark}{_mask_pairs(query)}{fragment_mark}{fragment}"


def _mask_pairs(query: str) -> str:
    if "=" not in query:
        return query
    pairs = query.split("&")
    names = {pair.partition("=")[0].lower() for pair in pairs}
    return "&".join(_mask_pair(pair, names) for pair in pairs)


def _mask_pair(pair: str, names: set[str]) -> str:
    name, equals, value = pair.partition("=")
    plain = name.lower()
    is_oauth_code = plain == "code" and names & _OAUTH_PARAMETERS
    secret = is_oauth_code or any(fnmatchcase(plain, glob) for glob in SECRET_PARAMETERS)
    return f"{name}={MASK}" if equals and value and secret else pair


def site_key(url: str) -> str:
    """Return the key of the site of a URL: its exact host, with the port if it is not the scheme's default.

    >>> site_key("https://Example.org:443/x"), site_key("http://127.0.0.1:8000/")
    ('example.org', '127.0.0.1:8000')
    """
    return urlsplit(normalize_url(url, UrlPolicy())).netloc.rpartition("@")[2]


def is_part_of(target: str, here: str) -> bool:
    """Return whether a link leads to a fragment of the page that it is on, which is no route of a client-side router.

    Such a link scrolls, or acts by a script as a button does; no document is loaded.

    >>> is_part_of("http://x/a#info", "http://x/a"), is_part_of("http://x/a#/info", "http://x/a#top")
    (True, False)
    """
    page, mark, fragment = target.partition("#")
    return bool(mark) and page == here.partition("#")[0] and not is_route(fragment)


def url_template(url: str) -> str:
    """Return the URL with numeric and hex-like path segments and all query values removed: equal for pages of one kind.

    >>> url_template("http://x/orders/17/edit?tab=a")
    'http://x/orders/*/edit?tab='
    """
    try:
        parts = urlsplit(url)
    except ValueError:
        return url
    pieces = ["*" if re.fullmatch(r"\d+|[0-9a-fA-F-]{16,}", piece) else piece for piece in parts.path.split("/")]
    keys = [f"{key}=" for key, _ in parse_qsl(parts.query, keep_blank_values=True)]
    return urlunsplit((parts.scheme, parts.netloc, "/".join(pieces), "&".join(keys), ""))
