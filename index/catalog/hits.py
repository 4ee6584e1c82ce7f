"""Search hits of one map, with the rows of the state that earned the score."""

from __future__ import annotations

from dataclasses import dataclass

from waygraph.index.graph import Lead, Segment, Tool


@dataclass(frozen=True, slots=True)
class ExplainedRow:
    """A row of a state that is the best match of some rows of the query.

    Attributes
    ----------
    row
        Its index in the state's multi-vector.
    query_rows
        Indices of the query rows (its tokens, if the encoder keeps them) that match it best.
    text
        The text that the row encodes.
    score
        Its largest dot product with one of these query rows.
    segments
        The visible texts from which the row was made, with their boxes on the page; may be empty.
    earned
        Its part of the state's MaxSim: the dot products with these query rows, divided by the number of all query rows.
        The parts of all rows add up to the score.
    generated
        Whether the text is part of a generated description.
    """

    row: int
    query_rows: tuple[int, ...]
    text: str
    score: float
    segments: tuple[Segment, ...]
    earned: float
    generated: bool = False


@dataclass(frozen=True, slots=True)
class HitExplanation:
    """Rows of a state's multi-vector that earned a hit's score, those that contributed most first.

    Every query row is in exactly one part, so there is at least one.
    """

    parts: tuple[ExplainedRow, ...]

    @property
    def text(self) -> str:
        """The text of the row that contributed most."""
        return self.parts[0].text

    @property
    def generated(self) -> bool:
        """Whether that text is part of a generated description."""
        return self.parts[0].generated

    @property
    def score(self) -> float:
        """That row's largest dot product with a query row."""
        return self.parts[0].score

    @property
    def segments(self) -> tuple[Segment, ...]:
        """The visible texts behind all parts, each once, with their boxes; may be empty."""
        return tuple(dict.fromkeys(segment for part in self.parts for segment in part.segments))


@dataclass(frozen=True, slots=True)
class SearchHit:
    """One search hit: a state, a lead, or a tool with a state that has it.

    Attributes
    ----------
    rank
        Rank among the hits, from 1.
    node_id
        Id of the state or lead.
    url
        URL that is requested to load it.
    title
        Title of its document; of a lead the name of the link.
    score
        MaxSim as the mean over query rows. A search in words adds them, and lowers leads and further states
        of a page (`OpenMap.rescored`). Of a tool, the sum that `tool_search` describes.
    matched
        The rows that earned the score.
    screenshot
        Content hash of the image; empty if there is none.
    lead
        The lead; None for a state.
    tool
        The tool that was searched for, and which the state has; None in a search for pages.
    reranked
        Score of the cross-encoder that ordered the hits anew; None if there was none, or it did not read this hit.
    """

    rank: int
    node_id: str
    url: str
    title: str
    score: float
    matched: HitExplanation
    screenshot: str = ""
    lead: Lead | None = None
    tool: Tool | None = None
    reranked: float | None = None
