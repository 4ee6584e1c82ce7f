"""Requests and answers of the HTTP API and of `--json` output: the contract with agents."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from waygraph.spelling import spellable

#: Most element hashes one `locate` may send: beyond this a page is looked up by its URL.
MAX_STRUCTURE = 25_000
#: Largest body of a request. A structure of so many hashes fits; with the features of such a page it may not.
MAX_BODY_BYTES = 1_000_000

#: Hash of a text or an element without its place, see `pipeline.browser.features`.
Feature = Annotated[str, Field(pattern=r"^[0-9a-f]{12}$")]
#: MD5 (hex) of an element's full XPath, see `index.graph.identity`.
ElementHash = Annotated[str, Field(pattern=r"^[0-9a-f]{32}$")]


def _spellable(value: object) -> object:
    """Replace what JSON escapes may carry but UTF-8 cannot spell (lone surrogates): pages contain such texts."""
    if isinstance(value, str):
        return spellable(value)
    if isinstance(value, dict):
        return {_spellable(key): _spellable(item) for key, item in value.items()}
    return [_spellable(item) for item in value] if isinstance(value, list | tuple) else value


#: A text, or a JSON object with texts, that came from a page.
PageText = Annotated[str, BeforeValidator(_spellable)]
PageObject = Annotated[dict[str, Any], BeforeValidator(_spellable)]

_PROBLEM_TYPE = "urn:waygraph:problem:"


class _Schema(BaseModel):
    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True)


class ActionModel(_Schema):
    """A replayable step; see `index.graph.Action` for what each field means."""

    kind: Literal["goto", "click", "hover", "dblclick", "contextmenu", "press", "input", "select", "focus", "submit"]
    url: PageText = ""
    frame: list[PageText] = []
    role: PageText = ""
    name: PageText = ""
    nth: int = 0
    xpath: PageText = ""
    css: PageText = ""
    target: PageText = ""
    value: PageText = ""


class EvidenceModel(_Schema):
    """When a page that differs from a state's recorded look in noise counts as that state; see `index.graph.Evidence`.

    Features are hashes of texts and elements without their places, as `pipeline.browser.features` makes them.
    """

    shows: dict[str, int] = {}
    """Features that must be there, at least so often."""
    hides: dict[str, int] = {}
    """Features that must not be there more often than this."""
    features: list[str] = []
    """Random sample of the state's features."""
    elements: list[str] = []
    """Random sample of its structure: first 12 characters of element hashes."""
    own: list[str] = []
    """Those of `features` that few other URLs of the site show."""
    alone: bool = True
    """No state of another URL has the same structure."""
    named: bool = False
    """What looks drawn at random in the state's URL names its page, and must be equal."""


class StepModel(_Schema):
    """One action of a path, with what must be seen after it."""

    action: ActionModel
    expected_url: PageText
    expected_node_id: str
    cost_ms: float
    inherited: bool = False
    """Never walked while exploring: taken over from the state this one was found from."""
    opens_tab: bool = False
    suspect: bool = False
    """Lately an agent reported that it does not work; there is no other way."""
    accepts: list[str] = []
    """Ids of other looks that count as the expected state: it was seen with them while exploring."""
    evidence: EvidenceModel | None = None
    """When a page counts as the expected state although it has none of these ids; absent: never."""
    change: str = ""
    """Of a step that stays on its page: which elements come and go by it, whatever else the page shows. MD5 (hex) of
    the hashes of those that go, sorted and joined, a line feed, and those that come."""


class PathAnswer(_Schema):
    """The cheapest known action sequence; no steps: already there."""

    site: str
    version: int
    source: str | None
    target: str
    cost_ms: float
    steps: list[StepModel]
    others: list[PathAnswer] = []
    """Further ways without loops, cheapest first, when they were asked for."""


class AvoidedStep(_Schema):
    """A recorded step that a path must not use, for example because it just failed."""

    source: str | None
    """State from which it was tried (node id). Absent: from anywhere, so a `goto`, or an element that the agent's
    browser does not show: elements of this kind, role, name and target are then avoided on every page."""
    action: ActionModel
    """A `goto` is avoided wherever it is tried from."""


class PathRequest(_Schema):
    """From where (node id; absent: from anywhere, by `goto`) to where."""

    model_config = ConfigDict(extra="forbid", populate_by_name=True)

    source: str | None = Field(None, alias="from")
    target: str = Field(alias="to")
    allow_goto: bool = True
    avoid: list[AvoidedStep] = Field([], max_length=100)
    alternatives: int = Field(0, ge=0, le=10)
    """How many further ways to give, where there are any."""


class Filter(_Schema):
    """Which states may answer a question."""

    url_prefix: str = Field("", max_length=2_000)
    """Their URL begins like this."""
    max_depth: int | None = Field(None, ge=0)
    """So many actions away from the start page at most."""
    max_age_days: float | None = Field(None, gt=0)
    """The map was published so long ago at most; of a site whose map is older nothing is found."""
    min_score: float | None = None
    """They score at least so much."""


class SearchRequest(Filter):
    """A question about where something is, in plain words."""

    query: str = Field(min_length=1, max_length=2_000)
    k: int = Field(10, ge=1)


def filter_of(wanted: SearchRequest) -> Filter:
    """The filter of a search, without its question."""
    return Filter(**{name: getattr(wanted, name) for name in Filter.model_fields})


class BatchSearchRequest(_Schema):
    """Several questions at once."""

    site: str | None = None
    """Site that is searched; absent: all."""
    searches: list[SearchRequest] = Field(min_length=1, max_length=64)


class BoxModel(_Schema):
    """Rectangle in CSS pixels relative to the page."""

    x: int
    y: int
    width: int
    height: int


class SegmentModel(_Schema):
    """A visible text of a state."""

    text: PageText
    role: PageText
    box: BoxModel


class MatchModel(_Schema):
    """Why a state was found: the encoded text that scored best, and the visible texts it was made of."""

    text: PageText
    score: float
    segments: list[SegmentModel] = []


class Hit(_Schema):
    """A state that answers the question. `score` is MaxSim as a mean over query rows."""

    rank: int
    node_id: str
    url: PageText
    title: PageText
    score: float
    site: str = ""
    matched: MatchModel | None = None
    screenshot: str | None = None
    """Path of the screenshot on this service; absent: it was recorded without one."""


class SearchAnswer(_Schema):
    """Ranked states, best first."""

    hits: list[Hit]
    version: int | None = None
    """Map version that was searched; absent when several sites were."""
    skipped: dict[str, str] = {}
    """Sites that a search across sites could not search, and why."""
    nothing_matches: bool | None = None
    """The best state scores so low that most likely nothing answers the question. Absent: the scores of this encoder
    were never compared with questions that have no answer."""


class BatchSearchAnswer(_Schema):
    """One answer for each question, in order."""

    answers: list[SearchAnswer]


class LocateRequest(_Schema):
    """What the agent sees: its URL, and (if it can compute it) the structure of the page."""

    url: str = Field(min_length=1, max_length=8_192)
    structure: list[ElementHash] | None = Field(None, max_length=MAX_STRUCTURE)
    features: dict[Feature, Annotated[int, Field(ge=0)]] | None = Field(None, max_length=MAX_STRUCTURE)
    """What the page shows, each with its count: asks for the state that this tells from others, where the structure is
    nobody's."""


class LocateAnswer(_Schema):
    """Which state that is, how sure we are, and which rule decided."""

    node_id: str | None
    rule: Literal["exact", "evidence", "structure", "url", "none"]
    """`evidence` only who sent `features` is told."""
    confidence: float
    version: int


SelectorName = Literal["top1", "rule", "llm"]


class CurrentPage(_Schema):
    """Where the agent is: a state's id, or what it sees."""

    node_id: str | None = Field(None, max_length=64)
    url: str = Field("", max_length=8_192)
    structure: list[ElementHash] | None = Field(None, max_length=MAX_STRUCTURE)


class NavigateRequest(_Schema):
    """Where is it, which of the candidates is it, and how does one get there: in one call."""

    site: str = Field(min_length=1, max_length=300)
    query: str = Field(min_length=1, max_length=2_000)
    """The page that is looked for, in plain words."""
    intent: str = Field("", max_length=8_000)
    """What the agent wants there: helps to choose among candidates, and is not searched for."""
    current: CurrentPage | None = None
    """Absent: the way begins by loading a URL."""
    k: int = Field(30, ge=1, le=100)
    """Candidates to choose from."""
    select: SelectorName | None = None
    """Who chooses; absent: the service's default."""
    allow_goto: bool = True
    avoid: list[AvoidedStep] = Field([], max_length=100)


class UsageModel(_Schema):
    """What asking a language model took."""

    model: str
    calls: int
    input_tokens: int
    output_tokens: int
    seconds: float
    cost: float | None = None
    """In the currency of the configured prices; absent when none are configured."""


class NavigateAnswer(_Schema):
    """The chosen state and the way to it."""

    site: str
    version: int
    node_id: str | None
    """The chosen state; absent: none of the candidates is it."""
    selector: SelectorName
    """Who chose. `top1` also when the one who was asked could not: `notes` say why."""
    reason: str
    candidates: list[Hit]
    nothing_matches: bool | None = None
    """As in a search; whoever chose did not have to agree."""
    current: LocateAnswer | None = None
    path: PathAnswer | None = None
    """Absent when nothing was chosen, or when no way is known: `notes` say which conditions stand in the way."""
    notes: list[str] = []
    usage: UsageModel | None = None


class WalkedStep(_Schema):
    """A recorded step that an agent walked."""

    source: str | None
    """State from which it was walked; absent when that was unknown."""
    action: ActionModel
    target: str
    """The state that the map expects after it."""
    outcome: Literal["ok", "drifted", "gone"]
    """`ok`: it showed that state; `drifted`: it showed something else; `gone`: the element was not there."""
    ms: float | None = Field(None, ge=0)


class FeedbackRequest(_Schema):
    """How steps of paths worked in an agent's browser."""

    walked: list[WalkedStep] = Field(min_length=1, max_length=200)


class FeedbackAnswer(_Schema):
    """What became of the report."""

    taken: int
    unknown: int
    """Steps that the current version of the map does not hold."""


class SiteSummary(_Schema):
    """One mapped site."""

    site: str
    version: int
    start_url: PageText
    states: int
    edges: int
    created: str
    """When the current version was published (ISO 8601, UTC)."""
    partial: bool
    """The run was stopped by wall time before it was done."""


class SiteDetail(SiteSummary):
    """One mapped site with everything its manifest says to callers."""

    versions: list[int]
    start_node_id: str
    depth: int
    encoder: dict[str, Any]
    capture: PageObject
    """Capture profile: what the browser looked like to the site."""
    settings: PageObject
    """Explore settings: which elements were looked at, and how URLs were normalised."""
    report: PageObject
    merges: dict[str, int] = {}
    """How many looks were taken for a known state, by reason."""
    stood_for: int = 0
    """Pages that are no states because another one stands for them (skeleton mode)."""


class NodeAnswer(_Schema):
    """One state."""

    site: str
    version: int
    node_id: str
    url: PageText
    title: PageText
    depth: int
    addressable: bool
    screenshot: str | None
    """Path of the screenshot on this service."""
    segments: list[SegmentModel]
    edges: list[StepModel]
    """What can be done from here, inherited actions last. What must be seen after it, only paths tell."""
    aliases: list[str] = []
    """Ids of other looks at this state, which differ in noise alone."""
    stands_for: int = 1
    """How many pages of its kind this state represents (skeleton mode), itself included."""
    evidence: EvidenceModel | None = None
    """As in a step of a path."""


class Problem(BaseModel):
    """RFC 9457 problem details; `hint` is what to do about it."""

    type: str
    title: str
    status: int
    detail: PageText
    hint: PageText = ""
    instance: PageText = ""


class MissingPart(_Schema):
    """One thing without which the service cannot answer every request."""

    part: str
    type: str
    """Kind of error, as in `Problem.type`."""
    detail: str
    hint: str = ""
    final: bool = False
    """Waiting does not help."""


class NotReady(Problem):
    """The problem that `/readyz` answers with until the service is ready."""

    missing: list[MissingPart]


class Ready(_Schema):
    """The service can answer every request."""

    status: Literal["ready"] = "ready"
    sites: int
    encoder: str


class Alive(_Schema):
    """The service runs."""

    status: Literal["ok"] = "ok"


def problem_type(slug: str) -> str:
    """Name a kind of error as `Problem.type`.

    >>> problem_type("no-path")
    'urn:waygraph:problem:no-path'
    """
    return f"{_PROBLEM_TYPE}{slug}"


def problem_slug(type_: str) -> str:
    """Read the kind of error from `Problem.type`; empty when it is not one of ours."""
    return type_.removeprefix(_PROBLEM_TYPE) if type_.startswith(_PROBLEM_TYPE) else ""
