"""WebNavigator's choice of a page: search the map, and let a model choose where the first hit is not sure."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Sequence
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from waygraph.agents.actions.navigation import SelectedPage, nearest_pages
from waygraph.agents.actions.types import NavigateAction
from waygraph.agents.models.chat import ChatMessage, ChatModel, ChatRequest, ImagePart
from waygraph.agents.models.structured import complete_as
from waygraph.core.errors import NotFound
from waygraph.core.schemas import Filter, Hit
from waygraph.sdk.facade import AsyncWaygraph
from waygraph.serve.select.candidate_prompt import INSTRUCTIONS, CandidateView, candidate_parts
from waygraph.serve.select.protocol import RetrievedState, SelectionQuery
from waygraph.serve.select.shortlist import is_sure, shortlists

#: Width of a screenshot, in pixels.
IMAGE_PX = 512
#: Pages that are read from the map at the same time.
_READS_AT_A_TIME = 8
_MARK_DIGITS = 8


class PageChoice(BaseModel):
    """The page that is meant."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    reasoning: Annotated[str, Field(max_length=20_000, description="Why, in a few words.")]
    choice: Annotated[int | None, Field(description="Number of the page; null: none fits.")]


class ModelPageSelector:
    """Searches with the query, and lets a model choose in doubt (Retrieve and Reason).

    The reason that an agent gives is for the choice alone: in a search, what it says about other pages would count,
    and confidence is measured on queries. A choice that is no candidate's number counts as none.

    Parameters
    ----------
    model
        The model.
    task
        The agent's task.
    images
        Whether it gets screenshots of the candidates besides their texts.
    candidates
        Most candidates.
    always
        Whether the model is asked even if the first hit is sure.
    """

    def __init__(
        self, model: ChatModel, task: str = "", *, images: bool = False, candidates: int = 30, always: bool = False
    ) -> None:
        self._model = model
        self._task = task
        self._images = images
        self._candidates = candidates
        self._always = always

    async def select(self, maps: AsyncWaygraph, action: NavigateAction) -> SelectedPage:
        """Return the page that is meant; see `PageSelector.select`."""
        found = await maps.search(action.site, action.query, self._candidates, Filter(reachable_only=True))
        hits, nearest = found.hits, nearest_pages(found.hits)
        if hits and not self._always and is_sure(found.confidence, nothing_matches=found.nothing_matches):
            return SelectedPage(hits[0].node_id, hits[0].url, hits[0].title, confidence=found.confidence)
        reason = "The search found no page."
        for shown in shortlists(hits, self._candidates):
            states = await self._read(maps, action.site, [hits[index] for index in shown])
            reply, _ = await complete_as(self._model, self._request(action, states), PageChoice)
            if reply.choice is not None and 1 <= reply.choice <= len(states):
                chosen = states[reply.choice - 1].hit
                return SelectedPage(chosen.node_id, chosen.url, chosen.title, reply.reasoning, chosen_of=len(states))
            reason = reply.reasoning
        return SelectedPage(None, reason=reason, nearest=nearest)

    async def _read(self, maps: AsyncWaygraph, site: str, hits: Sequence[Hit]) -> list[RetrievedState]:
        """Read texts and images of all hits; pages that a newer version of the map no longer has are left out."""
        limit = asyncio.Semaphore(_READS_AT_A_TIME)

        async def read(hit: Hit) -> RetrievedState | None:
            async with limit:
                try:
                    node = await maps.node(site, hit.node_id)
                    wants_image = self._images and hit.screenshot is not None
                    image = await maps.screenshot(site, hit.node_id) if wants_image else None
                except NotFound:
                    return None
            texts = tuple(segment.text for segment in node.segments)
            return RetrievedState(hit, texts, lambda: image, lambda: None)

        states = await asyncio.gather(*map(read, hits))
        return [state for state in states if state is not None]

    def _request(self, action: NavigateAction, states: Sequence[RetrievedState]) -> ChatRequest:
        query = SelectionQuery(action.query, action.thinking, self._task)
        # The mark depends on what is shown: a page cannot contain it, and equal questions make equal requests.
        shown = "\n".join(text for state in states for text in (state.hit.node_id, *state.texts))
        mark = hashlib.sha256(shown.encode(errors="replace")).hexdigest()[:_MARK_DIGITS]
        view = CandidateView(image_px=IMAGE_PX if self._images else 0)
        parts = candidate_parts(query, states, mark=mark, view=view)
        message = ChatMessage.user(
            *(part if isinstance(part, str) else ImagePart(part, "image/jpeg") for part in parts)
        )
        return ChatRequest((ChatMessage.system(INSTRUCTIONS), message))
