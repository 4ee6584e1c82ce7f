"""WebNavigator's choice of a page: retrieve many by the query and its reason, let the model choose one, or none."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Sequence
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from waygraph.agents.actions.navigation import SelectedPage
from waygraph.agents.actions.types import NavigateAction
from waygraph.agents.models.chat import ChatMessage, ChatModel, ChatRequest, ImagePart
from waygraph.agents.models.structured import complete_as
from waygraph.core.errors import NotFound
from waygraph.core.schemas import MAX_QUERY_CHARS, Hit
from waygraph.sdk.facade import AsyncWaygraph
from waygraph.serve.select.candidate_prompt import INSTRUCTIONS, CandidateView, candidate_parts
from waygraph.serve.select.protocol import RetrievedState, SelectionQuery

#: Pages that the model chooses from, as in the paper.
CANDIDATES = 30
#: Width of a screenshot, in pixels.
IMAGE_PX = 512
#: Pages that are read from the map at the same time.
_READS_AT_A_TIME = 8
_MARK_DIGITS = 8


class PageChoice(BaseModel):
    """The page that is meant."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    reasoning: Annotated[str, Field(max_length=20_000, description="Why, in one or two sentences.")]
    choice: Annotated[int | None, Field(description="Number of the candidate; null: none fits.")]


class ModelPageSelector:
    """Searches with the query and what the page is wanted for, and lets a model choose (Retrieve and Reason).

    One candidate alone is chosen without a question. A choice that is no candidate's number counts as none.

    Parameters
    ----------
    model
        The model.
    images
        Whether it gets screenshots of the candidates besides their texts.
    candidates
        Number of candidates.
    """

    def __init__(self, model: ChatModel, *, images: bool = False, candidates: int = CANDIDATES) -> None:
        self._model = model
        self._images = images
        self._candidates = candidates

    async def select(self, maps: AsyncWaygraph, action: NavigateAction) -> SelectedPage:
        """Return the page that is meant; see `PageSelector.select`."""
        query = f"{action.thinking} {action.query}".strip()[-MAX_QUERY_CHARS:]
        found = await maps.search(action.site, query, k=self._candidates)
        hits = [hit for hit in found.hits if not hit.refusal]
        if not hits:
            return SelectedPage(None, reason="The search found no page.")
        if len(hits) == 1:
            return SelectedPage(hits[0].node_id, hits[0].url, "It is the only page that was found.")
        states = await self._read(maps, action.site, hits)
        reply, _ = await complete_as(self._model, self._request(action, states), PageChoice)
        if reply.choice is None or not 1 <= reply.choice <= len(states):
            return SelectedPage(None, reason=reply.reasoning)
        chosen = states[reply.choice - 1].hit
        return SelectedPage(chosen.node_id, chosen.url, reply.reasoning)

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
        query = SelectionQuery(action.query, action.thinking)
        # The mark depends on what is shown: a page cannot contain it, and equal questions make equal requests.
        shown = "\n".join(text for state in states for text in (state.hit.node_id, *state.texts))
        mark = hashlib.sha256(shown.encode(errors="replace")).hexdigest()[:_MARK_DIGITS]
        view = CandidateView(image_px=IMAGE_PX if self._images else 0, costs=False)
        parts = candidate_parts(query, states, mark=mark, view=view)
        message = ChatMessage.user(
            *(part if isinstance(part, str) else ImagePart(part, "image/jpeg") for part in parts)
        )
        return ChatRequest((ChatMessage.system(INSTRUCTIONS), message))
