"""`url_match`: the reference is a part of the final URL, and its query parameters have one of the wanted values."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from urllib.parse import parse_qs, urlsplit

from waygraph.agents.scoring.dialects import ScoringDialect
from waygraph.agents.tasks.task import ALTERNATIVES_SEPARATOR


def is_url_match(final_url: str, references: Sequence[str], dialect: ScoringDialect) -> bool:
    """Return whether the final URL matches one of the references.

    A reference may hold several URLs. Host and path of one of them must be a part of the final URL's; a query parameter
    that any of them has must be in the final URL with a value that one of them gives. So the parameters of all its URLs
    are required together, as in the evaluators that this follows.

    Parameters
    ----------
    final_url
        URL of the page that the agent left.
    references
        References; one match is enough.
    dialect
        How URLs are compared.

    Returns
    -------
    bool
        Whether one matches. A final URL that is not well formed matches nothing.
    """
    try:
        place, query = _parse(final_url, dialect)
    except ValueError:
        return False
    for reference in references:
        wanted: defaultdict[str, set[str]] = defaultdict(set)
        places = []
        for text in reference.split(ALTERNATIVES_SEPARATOR):
            wanted_place, wanted_query = _parse(text, dialect)
            places.append(wanted_place)
            for name, values in wanted_query.items():
                wanted[name].update(values)
        if any(each in place for each in places) and all(
            values.intersection(query.get(name, ())) for name, values in wanted.items()
        ):
            return True
    return False


def unmet_alternatives(reference: str, dialect: ScoringDialect) -> tuple[str, ...]:
    """Return the alternatives of a reference that do not match it themselves.

    Parameters
    ----------
    reference
        The reference.
    dialect
        How URLs are compared.

    Returns
    -------
    tuple of str
        Alternatives that lack query parameters which others have.

    Examples
    --------
    >>> from waygraph.agents.scoring.dialects import DIALECTS, DialectName
    >>> unmet_alternatives("http://a/x?q=1 |OR| http://a/y", DIALECTS[DialectName.WEBARENA])
    ('http://a/y',)
    """
    alternatives = reference.split(ALTERNATIVES_SEPARATOR)
    return tuple(each for each in alternatives if not is_url_match(each, [reference], dialect))


def _parse(url: str, dialect: ScoringDialect) -> tuple[str, dict[str, list[str]]]:
    cleaned = url.rstrip("/")
    parts = urlsplit(cleaned.lower() if dialect.lowers_urls else cleaned)
    place = parts.netloc + parts.path
    return place.rstrip("/") if dialect.drops_slash_before_query else place, parse_qs(parts.query)
