"""Pages that are drawn by an application whose document came with the status 404.

Static hosts answer every address that is no file with one document and the status 404: the application, which then
draws what the address names. What is drawn decides whether such a document is a page of the site.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from http import HTTPStatus
from urllib.parse import unquote, urlsplit

from waygraph.index.graph import Action
from waygraph.pipeline.browser.page.snapshot import Snapshot
from waygraph.pipeline.explore.identity.features import content_key
from waygraph.pipeline.explore.policies.lexicon import fold, words

#: What error pages say, folded, in the languages of `hazards.yaml`.
_ERROR = re.compile(
    r"\b(?:404|410|error|oops|sorry)\b|not (?:be )?found|(?:does not|doesn.t|no longer) exist|page missing"
    r"|no such page|nothing here|can.?t find|cannot find|couldn.t find|nicht gefunden|existiert nicht|fehler"
    r"|introuvable|n.existe pas|erreur|no encontrad|no existe|nao encontrad|nao existe|non trovat|non esiste|errore"
    r"|niet gevonden|bestaat niet|hittades inte|finns inte|ikke fundet|findes ikke|ikke funnet|finnes ikke|ei loydy"
    r"|ei loytynyt|nie znaleziono|nie istnieje|nenalezen|neexistuje|nu a fost gasit|nu exista|nem talalhato"
    r"|nem letezik|δεν βρεθηκε|δεν υπαρχει|не наиден|не существует|не знаиден|не існує|не існуе|bulunamadi"
    r"|mevcut degil|غير موجود|لم يتم العثور|לא נמצא|नहीं मिल|tidak ditemukan|khong tim thay|khong ton tai"
    r"|見つかりません|存在しません|找不到|未找到|不存在|찾을 수 없|존재하지 않"
)
#: Texts of a page without headings that are searched for such words.
_FIRST_TEXTS = 12
#: Links to pages of the site that a page must share with the one that links to it.
_SHARED_LINKS = 2
#: Letters of the shortest word that is compared, and of the beginnings of words that are.
_MIN_LETTERS, _STEM = 3, 5


def may_be_drawn(snapshot: Snapshot) -> bool:
    """Return whether a document with the status 404 does not say that something is missing."""
    if snapshot.status != HTTPStatus.NOT_FOUND or snapshot.content_type not in {"text/html", "application/xhtml+xml"}:
        return False
    texts = _titles(snapshot)
    return not any(_ERROR.search(fold(text)) for text in texts)


class DrawnPages:
    """What documents with the status 404 show. Deterministic: pages must be noted in the order of commits.

    A site's error page is one page at many addresses, so a page that another such address showed is none.
    """

    def __init__(self) -> None:
        self._shown: dict[str, str] = {}
        """By content, the URL that showed it first."""

    def is_page(self, snapshot: Snapshot, source: Snapshot, link: Action) -> bool:
        """Return whether a document with an error as its status is a page of the site, by what it shows.

        Parameters
        ----------
        snapshot
            The page.
        source
            Page that links to it.
        link
            The link.

        Returns
        -------
        bool
            Whether it says nothing of an error, has a word of the link or of its address in its title or a heading, has
            the navigation of the page that links to it, and was not shown at another such address.
        """
        content = content_key(snapshot)
        if content is None or self._shown.setdefault(content, snapshot.url) != snapshot.url:
            return False
        if not may_be_drawn(snapshot) or len(_links(snapshot) & _links(source)) < _SHARED_LINKS:
            return False
        return not _stems((link.name, urlsplit(snapshot.raw_url).path)).isdisjoint(_stems(_titles(snapshot)))

    def to_checkpoint(self) -> dict[str, str]:
        """Return what was shown, as plain JSON."""
        return dict(self._shown)

    def load_checkpoint(self, checkpoint: dict[str, str]) -> None:
        """Restore what `to_checkpoint` returned."""
        self._shown = dict(checkpoint)


def _titles(snapshot: Snapshot) -> list[str]:
    """Return the title and the headings of a page; without headings its first texts."""
    headings = [segment.text for segment in snapshot.segments if segment.role == "heading"]
    return [snapshot.title, *(headings or [segment.text for segment in snapshot.segments[:_FIRST_TEXTS]])]


def _stems(texts: Iterable[str]) -> set[str]:
    """Return the beginnings of the words of texts: forms of one word share them (`about`, `About us`)."""
    return {word[:_STEM] for text in texts for word in words(unquote(text)) if len(word) >= _MIN_LETTERS}


def _links(snapshot: Snapshot) -> set[str]:
    targets = (candidate.action.target.partition("#")[0] for candidate in snapshot.candidates)
    return {target for target in targets if target.startswith(("http:", "https:"))}
