"""What do frames show that the page itself may not look into? Those of the site's other origins, asked one by one.

A script reads the documents of its own origin only. So the in-page script tells which frames it could not read
(`foreign` in its answers: the driver's token for each, whether it is sandboxed, where it is when it is exposed), and
those that belong to the site are asked for themselves. What they answer is put where they stand: paths get the frame's
hop, boxes are in page coordinates, texts and candidates stand in document order.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import uuid
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from msgspec import structs
from playwright.async_api import Error as PlaywrightError
from playwright.async_api import Frame, Page

from index.graph import Action, site_key
from pipeline.browser.asking import NAVIGATED, read_answer
from pipeline.browser.script import WAYGRAPH, page_script
from waygraph.errors import BrowserFailure

log = logging.getLogger(__name__)

#: Frames in frames in frames: what is deeper is looked at as its element only.
MAX_DEPTH = 4
#: A page and its frames are looked at together, and again when a frame had still been busy: at most so often.
MAX_ROUNDS = 4
#: A frame that is replaced again and again is given up.
_MAX_TRIES = 5
#: The pointer is moved so often to a place in a frame that does not notice, and that is waited for so long each time.
_MAX_POINTS, _POINT_PATIENCE_MS = 10, 100
_IS_POINTED_AT = """patience => new Promise(done => {
  const until = performance.now() + patience;
  const look = () => {
    if (document.querySelector(":hover")) done(true);
    else if (performance.now() > until) done(false);
    else requestAnimationFrame(look);
  };
  look();
})"""
#: What is told once and then forgotten by the in-page script.
_TOLD_ONCE = ("opened", "tabs", "stopped", "dialogs")
_NAME = "(element, token) => { element[Symbol.for('waygraph frame')] = token; }"

#: The in-page script's answer, see `parse_snapshot`.
Answer = dict[str, Any]


@dataclass(frozen=True, slots=True)
class FrameScope:
    """Whose frames are looked into: those of the page's own host, of these hosts, of this registrable domain.

    Attributes
    ----------
    hosts : site keys (host, with the port when it is not the scheme's default).
    domain : all of its hosts, with any port; empty: none.
    """

    hosts: frozenset[str] = frozenset()
    domain: str = ""

    def covers(self, url: str, page_url: str) -> bool:
        """Whether a frame that shows `url` belongs to the same site as the page around it.

        >>> FrameScope(domain="x.example").covers("https://a.x.example:8443/", "https://b.x.example/")
        True
        >>> FrameScope().covers("http://127.0.0.1:81/", "http://127.0.0.1:80/")
        False
        """
        if not url.startswith(("http:", "https:")):
            return url.startswith(("about:srcdoc", "about:blank"))  # what the page itself wrote
        key = site_key(url)
        host = urlsplit(url).hostname or ""
        in_domain = bool(self.domain) and (host == self.domain or host.endswith(f".{self.domain}"))
        return key in self.hosts or in_domain or key == site_key(page_url)


#: Awaits a browser call, at most so many seconds; raises `BrowserFailure` when there is no answer.
Within = Callable[[Awaitable[Any], float], Awaitable[Any]]


@dataclass(frozen=True, slots=True)
class _Told:
    """What a frame answered; nothing when it gave none. `busy`: it, or one in it, had to be waited for."""

    answer: Answer | None
    busy: bool


class ForeignFrames:
    """The frames of other origins in one page that belong to the site.

    Parameters
    ----------
    within : awaits browser calls, but not for ever.
    patience_s : so long a frame is waited for; one that gives no answer is left to be its element.
    """

    def __init__(self, page: Page, scope: FrameScope, within: Within, *, patience_s: float) -> None:
        self._page = page
        self._scope = scope
        self._within = within
        self._patience_s = patience_s
        self._named: dict[str, Frame] = {}
        self._silent: dict[Frame, str] = {}
        """Frames that gave no answer, with what they showed then; they are not asked again before they show another."""

    @property
    def known(self) -> tuple[Frame, ...]:
        """Those that are there now, as far as they were looked into."""
        return tuple(frame for frame in self._named.values() if self._is_wanted(frame))

    async def complete(
        self, ask_page: Callable[[], Awaitable[str]], question: str, options: Mapping[str, Any]
    ) -> Answer:
        """The page's answer with those of its frames in it; empty when the page gave none.

        Costs nothing more than the page's own answer where no such frame is. Else each frame is asked once, and all
        again when one had been busy: what it did may have changed the page around it.

        Parameters
        ----------
        ask_page : asks the page itself; an empty text is no answer.
        question, options : what the frames are asked, `observe` or `quiet`.
        """
        told: Answer = {}
        for _ in range(MAX_ROUNDS):
            raw = await ask_page()
            if not raw:
                return {}
            answer: Answer = read_answer(raw)
            foreign = answer["foreign"]
            again = bool(foreign) and (await self._name(foreign) or await self._fill(answer, question, options))
            _remember(told, answer)
            if not again:
                break
        answer.update({key: told[key] for key in _TOLD_ONCE})
        answer["settled"]["capped"] |= told["capped"]
        return answer

    def frame(self, token: str) -> Frame | None:
        """The frame whose element has this name, when it belongs to the site."""
        frame = self._named.get(token)
        return frame if frame is not None and self._is_wanted(frame) else None

    async def find(
        self, action: Action, options: Mapping[str, Any], ask_page: Callable[..., Awaitable[str | None]]
    ) -> tuple[dict[str, Any] | None, tuple[Frame, ...]]:
        """What the in-page script finds of a recorded element, see `find` in `js/find.js`; points are in the page.

        Parameters
        ----------
        ask_page : puts a question of the script, with its arguments, to the page itself.

        Returns
        -------
        What was found (None: no answer), and the frames that had to be asked for it, outermost first.
        """
        raw = await ask_page("find", action.to_json(), options)
        found: dict[str, Any] | None = read_answer(raw) if raw is not None else None
        if found is None or "foreign" not in found:
            return found, ()
        frame = self.frame(found["foreign"])
        if frame is None and await self._name([["", True, None]]):
            raw = await ask_page("find", action.to_json(), options)
            frame = self.frame(read_answer(raw).get("foreign", "")) if raw is not None else None
        if frame is None:
            return {"rung": ""}, ()
        left = tuple(found["left"])

        async def ask(question: str, *arguments: object) -> str | None:
            return await self.ask(frame, question, *arguments)

        inner, frames = await self.find(structs.replace(action, frame=left), options, ask)
        if inner is not None and "x" in inner:
            hops = action.frame[: len(action.frame) - len(left)]
            raw = await ask_page("reveal", hops, inner["x"], inner["y"])
            if raw is None:
                return None, ()
            point = read_answer(raw)
            inner = {**inner, **point} if "x" in point else {**inner, "covered": point["covered"]}
        return inner, (frame, *frames)

    async def ask(self, frame: Frame, question: str, *arguments: object) -> str | None:
        """Ask the in-page script of a frame, putting it there first where it is missing; `None` is no answer.

        Raises
        ------
        BrowserFailure, PlaywrightError
            When the frame does not answer, or is gone.
        """
        call = f"given => {WAYGRAPH}?.{question}(...given) ?? null"
        for _ in range(_MAX_TRIES):
            try:
                raw: str | None = await self._within(frame.evaluate(call, list(arguments)), self._patience_s)
                if raw is not None:
                    return raw
                await self._within(frame.evaluate(f"() => {{ {page_script()} }}"), self._patience_s)
            except PlaywrightError as error:
                if frame.is_detached() or not any(phrase in str(error) for phrase in NAVIGATED):
                    raise
        return None

    async def point(self, frame: Frame, x: float, y: float) -> None:
        """Move the pointer to a place of the page, until the frame that is shown there knows of it.

        A frame in a process of its own gets what the pointer does from the moment on at which the browser knows where
        it was drawn. Until then clicks go to the page around it, and do nothing.
        """
        for _ in range(_MAX_POINTS):
            await self._within(self._page.mouse.move(x, y), self._patience_s)
            if await self._within(frame.evaluate(_IS_POINTED_AT, _POINT_PATIENCE_MS), self._patience_s):
                return
        log.info("frames/not_pointed %s", frame.url)

    async def acted(self, *others: Frame) -> None:
        """Tell all of them, and `others`, that the page is about to be acted on: what timers bring now counts."""
        frames = {*self.known, *others}
        await asyncio.gather(*(self._tell_acted(frame) for frame in frames))

    async def _tell_acted(self, frame: Frame) -> None:
        try:
            await self._within(frame.evaluate(f"() => {WAYGRAPH}?.acted()"), self._patience_s)
        except (PlaywrightError, BrowserFailure) as error:
            log.debug("frames/gone %s: %s", frame.url, error)

    def _is_wanted(self, frame: Frame) -> bool:
        return (
            not frame.is_detached()
            and self._scope.covers(frame.url, self._page.url)
            and self._silent.get(frame) != frame.url
        )

    async def _name(self, entries: Iterable[list[Any]]) -> bool:
        """Give names to the elements of frames that have none; whether there were such frames."""
        nameless = [is_sandboxed for token, is_sandboxed, _ in entries if token not in self._named]
        if not nameless:
            return False
        self._named = {token: frame for token, frame in self._named.items() if not frame.is_detached()}
        known = set(self._named.values())
        fresh = [
            frame
            for frame in self._page.frames[1:]
            if frame not in known and self._is_wanted(frame) and (any(nameless) or _is_foreign(frame))
        ]
        await asyncio.gather(*(self._name_one(frame) for frame in fresh))
        return bool(fresh)

    async def _name_one(self, frame: Frame) -> None:
        token = uuid.uuid4().hex
        try:
            owner = await frame.frame_element()
            await owner.evaluate(_NAME, token)
            await owner.dispose()
        except PlaywrightError as error:
            log.debug("frames/gone %s: %s", frame.url, error)
            return
        self._named[token] = frame

    async def _fill(self, answer: Answer, question: str, options: Mapping[str, Any], depth: int = 1) -> bool:
        """Put into an answer what the frames in it say; whether that must be asked again."""
        if depth > MAX_DEPTH:
            return False
        places = [(place, self.frame(token)) for token, _, place in answer["foreign"]]
        asked = [(place, frame) for place, frame in places if frame is not None]
        told = await asyncio.gather(*(self._inside(f, place, question, options, depth) for place, f in asked))
        inner = [(place, each.answer) for (place, _), each in zip(asked, told, strict=True)]
        digests = [each["digest"] if each else "" for _, each in inner]
        if digests:
            answer["digest"] = hashlib.md5("\n".join([answer["digest"], *digests]).encode()).hexdigest()[:16]
        for place, each in reversed(inner):  # so that numbers of what stands before stay as they are
            if each is not None:
                _pass_on(answer, each)
                if question == "observe":
                    graft(answer, each, place)
        return any(each.busy for each in told)

    async def _inside(
        self, frame: Frame, place: Mapping[str, Any] | None, question: str, options: Mapping[str, Any], depth: int
    ) -> _Told:
        origin = {"origin": place["origin"]} if place else {}
        raw = None
        try:
            raw = await self.ask(frame, question, {**options, **origin})
        except (PlaywrightError, BrowserFailure) as error:
            log.info("frames/no_answer %s: %s", frame.url, str(error).partition("\n")[0])
        if raw is None:
            if not frame.is_detached():
                self._silent[frame] = frame.url
            return _Told(None, busy=frame.is_detached())
        answer: Answer = read_answer(raw)
        # What is named now, the next answer will say where it is.
        again = bool(answer["foreign"]) and (
            await self._name(answer["foreign"]) or await self._fill(answer, question, options, depth + 1)
        )
        return _Told(answer, busy=again or answer["settled"]["waited"])


def _is_foreign(frame: Frame) -> bool:
    """Whether what a frame shows is of another origin than what is around it, as far as URLs tell."""
    parent = frame.parent_frame
    url = urlsplit(frame.url)
    return url.scheme in {"http", "https"} and (
        parent is None or url[:2] != urlsplit(parent.url)[:2] or not parent.url.startswith(("http:", "https:"))
    )


def _remember(told: Answer, answer: Answer) -> None:
    """Add what is told only once, so that asking again loses nothing."""
    told["capped"] = told.get("capped", False) | answer["settled"]["capped"]
    for key in _TOLD_ONCE:
        told[key] = told.get(key, type(answer[key])()) + answer[key]


def _pass_on(outer: Answer, inner: Answer) -> None:
    """What happened in a frame happened in the page."""
    for key in _TOLD_ONCE:
        outer[key] = outer[key] + inner[key]
    outer["settled"]["capped"] |= inner["settled"]["capped"]


def graft(outer: Answer, inner: Answer, place: Mapping[str, Any] | None) -> None:
    """Put the look at a frame into the look at what is around it, in place.

    Parameters
    ----------
    place : where the frame is: its `path` (XPaths of frames, outermost first, its own last), and how many `candidates`
        and `segments` stand before it. None: it is not exposed, and what it shows does not count.
    """
    storage = outer["storage"].setdefault("frames", {})
    key = inner["url"].partition("?")[0].partition("#")[0]
    for area, items in inner["storage"].items():
        storage.update({f"{key} {area} {name}": value for name, value in items.items()})
    if place is None:
        return
    documents, places = len(outer["documents"]), len(outer["parents"])
    outer["documents"] += [[*place["path"], *path] for path in inner["documents"]]
    outer["steps"] = "\n".join(filter(None, (outer["steps"], inner["steps"])))
    outer["parents"] += [parent - documents if parent < 0 else parent + places for parent in inner["parents"]]
    outer["veiled"] += [number + places for number in inner["veiled"]]
    at = place["candidates"]
    outer["candidates"][at:at] = [moved(entry, places, documents) for entry in inner["candidates"]]
    if outer["banner"] and outer["banner"][0] >= at:
        outer["banner"][0] += len(inner["candidates"])
    at = place["segments"]
    outer["segments"][at:at] = inner["segments"]
    outer["cut"] |= inner["cut"]
    outer["password"] |= inner["password"]
    outer["ms"] += inner["ms"]


def moved(entry: list[Any], places: int, documents: int) -> list[Any]:
    """A candidate whose place and document have other numbers, see `flat` in `js/snapshot.js`."""
    kind, value, role, name, place, document, *more = entry
    return [kind, value, role, name, place + places, document + documents, *more]
