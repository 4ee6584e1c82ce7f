"""A map of four states, written by hand and encoded by the real encoder: every answer is known."""

from __future__ import annotations

from dataclasses import dataclass, replace

from waygraph.index.graph import (
    Action,
    Box,
    Edge,
    InteractionGraph,
    Node,
    Observation,
    Segment,
    Tool,
    element_hash,
    node_id,
    tool_id,
)
from waygraph.index.store import BlobStore, EncoderInfo, MapDraft
from waygraph.pipeline.encode.protocol import Encoder
from waygraph.pipeline.encode.text_counts import count_segments

#: Bytes that begin like a JPEG; nothing in the service looks further.
IMAGE = b"\xff\xd8\xff\xe0" + b"small map" * 20


@dataclass(frozen=True)
class State:
    """One page of the site, in words."""

    name: str
    path: str
    title: str
    texts: tuple[tuple[str, str], ...]
    addressable: bool = True


HOME = State(
    "home", "/", "Tea & Coffee", (("heading", "Welcome to our shop"), ("link", "Returns"), ("link", "Account"))
)
RETURNS = State(
    "returns",
    "/returns",
    "Returns and refunds",
    (("heading", "Send something back"), ("text", "You have thirty days to return an order and get your money back.")),
)
ACCOUNT = State(
    "account",
    "/account",
    "Your account",
    (("heading", "Your details"), ("textbox", "Delivery address"), ("tab", "Cards")),
)
CARDS = State(
    "cards",
    "/account",
    "Your account",
    (("heading", "Payment cards"), ("textbox", "Card number"), ("button", "Add a credit card")),
    addressable=False,
)
STATES = (HOME, RETURNS, ACCOUNT, CARDS)


class SmallMap:
    """Everything known about the map of one site."""

    def __init__(self, site: str = "tea.example") -> None:
        self.site = site
        self.nodes = {state.name: self._node(state) for state in STATES}
        self.edges = (
            self._click("home", "returns", "link", "Returns"),
            self._click("home", "account", "link", "Account"),
            self._click("account", "cards", "tab", "Cards"),
            self._click("cards", "account", "tab", "Details"),
            replace(self._click("returns", "account", "link", "Account"), inherited=True),
        )

    def id(self, name: str) -> str:
        """Node id of a state."""
        return self.nodes[name].id

    def tools(self) -> dict[str, Tool]:
        """What its states could offer, by id: a search form on all, a declared tool, a form that posts."""
        origin, everywhere = f"http://{self.site}", tuple(self.id(state.name) for state in reversed(STATES))
        words = {"type": "string", "description": "Words to look for"}
        search = Tool(
            "", "search", "Search", "", {"type": "object", "properties": {"q": words}, "required": ["q"]}, "inferred",
            everywhere, origin, element=Action("submit", role="searchbox", css="#search"), method="GET",
            target=f"{origin}/find", read_only=True,
        )  # fmt: skip
        number = {"type": "string", "description": "Number of the order"}
        returns = Tool(
            "", "start_return", "Return an order", "Send an order back for a refund",
            {"type": "object", "properties": {"order": number}, "required": ["order"], "additionalProperties": False},
            "script", (self.id("returns"),), origin, untrusted=True, consequential=True,
        )  # fmt: skip
        card = Tool(
            "", "add card", "Add a credit card", "", {"type": "object", "properties": {"number": {"type": "string"}}},
            "inferred", (self.id("cards"),), origin, element=Action("submit", css="#card"), method="POST",
            target=f"{origin}/cards",
        )  # fmt: skip
        return {name: replace(tool, id=name) for tool in (search, returns, card) for name in [tool_id(tool)]}

    def draft(
        self, encoder: Encoder, blobs: BlobStore, *, without: tuple[str, ...] = (), screenshot: bytes = IMAGE
    ) -> MapDraft:
        """The map, encoded, with screenshots of all states but `cards`; states in `without` are left out."""
        states = [state for state in STATES if state.name not in without]
        image = blobs.put(screenshot)
        seen = [self._observation(state, "" if state.name == "cards" else image) for state in states]
        context = encoder.prepare_site(count_segments(seen))
        pages = encoder.encode_pages(seen, context)
        known = {observation.node_id for observation in seen}
        return MapDraft(
            site=self.site,
            start_url=self.nodes["home"].url,
            graph=InteractionGraph(
                (self.nodes[state.name] for state in states),
                (edge for edge in self.edges if {edge.source, edge.target} <= known),
            ),
            observations={observation.node_id: observation for observation in seen},
            pages={observation.node_id: page for observation, page in zip(seen, pages, strict=True)},
            encoder=EncoderInfo(encoder.name, encoder.dim, encoder.fingerprint, context),
            capture={"viewport_width": 1280, "login": ""},
            report={"seconds": 1.5, "title": "lone surrogate: \ud800"},
        )

    def _url(self, state: State) -> str:
        return f"http://{self.site}{state.path}"

    def _node(self, state: State) -> Node:
        elements = [f"/html[1]/body[1]/{state.name}[1]", *(f"/html[1]/body[1]/p[{i + 1}]" for i in range(4))]
        structure = tuple(sorted(map(element_hash, elements)))
        return Node(
            id=node_id(structure, self._url(state)),
            url=self._url(state),
            title=state.title,
            structure=structure,
            depth={"home": 0, "cards": 2}.get(state.name, 1),
            addressable=state.addressable,
            load_ms=100.0,
        )

    def _click(self, source: str, target: str, role: str, name: str) -> Edge:
        action = Action(kind="click", role=role, name=name, xpath=f"/html[1]/body[1]/a[{len(name)}]")
        return Edge(self.id(source), self.id(target), action, cost_ms=50.0)

    def _observation(self, state: State, screenshot: str) -> Observation:
        return Observation(
            node_id=self.id(state.name),
            url=self._url(state),
            title=state.title,
            segments=tuple(Segment(text, role, Box(8, 40 * i, 300, 30)) for i, (role, text) in enumerate(state.texts)),
            screenshot=screenshot,
        )
