"""The small map in a store, and a scripted model that describes its pages."""

import json
from pathlib import Path

from tests.small_map import SmallMap
from waygraph.agents.models.chat import ChatRequest
from waygraph.agents.models.scripted import ScriptedModel
from waygraph.index.store import Store
from waygraph.pipeline.encode.protocol import Encoder

SITE = SmallMap()
#: Words that no page of the site shows.
CARDS_TEXTS = (
    "Keep your plastic up to date.",
    "which visa gets charged",
    "replace an expired mastercard",
    "is the old one still charged",
    "I got a new bank and want to use it here.",
    "let another account be debited",
    "billing method",
    "change visa",
)


def reply(*texts: str) -> str:
    """Return a reply of a description and seven texts; fewer are a reply of another form."""
    sentence, *asks = texts
    return json.dumps({"description": sentence, "questions": asks[:3], "tasks": asks[3:5], "phrases": asks[5:]})


def reply_for(request: ChatRequest) -> str:
    """What the script says about a page: by its title, and about cards in other words."""
    told = request.messages[-1].text
    if "Payment cards" in told:
        return reply(*CARDS_TEXTS)
    title = told.partition("Title: ")[2].partition("\n")[0]
    return reply(f"One sees {title}.", *(f"{title}, question {number}?" for number in range(7)))


def script(count: int = 20) -> ScriptedModel:
    return ScriptedModel([reply_for] * count)


def small_store(folder: Path, encoder: Encoder) -> Store:
    """Return a store in a new folder that holds the small map, encoded."""
    store = Store.open(str(folder / "maps"), create=True)
    store.publish(SITE.draft(encoder, store.blobs))
    return store
