"""What was a map made with, and has a refresh the same? Who visits the site, the user's rules for it, the encoder."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from index.store import Manifest, Store
from index.store.concurrency import concurrently
from pipeline.encode.registry import public_name
from pipeline.explore import visitor
from pipeline.explore.blocklist import rules_digest
from waygraph.errors import EncoderMismatch, NotFound, StoreError, TermsDiffer
from waygraph.settings import CaptureProfile, EncodeSettings, ExploreSettings, Settings

#: Explore settings that are the run's, not the map's: they shape no graph, or must not be written down.
_OF_THE_RUN = {
    "workers", "max_seconds", "max_bytes", "resume", "headers", "basic_auth", "proxy", "contact", "storage_state",
    "rules", "delay_seconds", "max_delay_seconds", "page_seconds",
}  # fmt: skip
#: What makes vectors what they are; where weights are and on what they run is this machine's business.
_OF_VECTORS = ("encoder", "dtype", "max_pixels")
#: What says in a user agent that it is our own, not one that somebody chose.
_OUR_AGENT = " waygraph/"


def current_manifests(store: Store, sites: Iterable[str]) -> dict[str, Manifest]:
    """Manifests of the current versions by site, in this order, several read at once; without what cannot be read."""

    def read(site: str) -> Manifest | None:
        try:
            return store.manifest(site)
        except (NotFound, StoreError):
            return None  # whoever takes the site up reads it again, and says what is wrong

    keys = list(dict.fromkeys(sites))
    found = zip(keys, concurrently(read, keys), strict=True)
    return {site: manifest for site, manifest in found if manifest is not None}


def settings_of(manifest: Manifest, settings: Settings) -> Settings:
    """The settings that a version was made with; what is the run's own is taken from `settings`.

    A session, headers or a password that the map was made without are left out: it stays what a stranger sees.
    """
    known = {name: value for name, value in manifest.settings.get("explore", {}).items() if name not in _OF_THE_RUN}
    fields = {name: value for name, value in known.items() if name in ExploreSettings.model_fields}
    current = {name: getattr(settings.explore, name) for name in _OF_THE_RUN}
    if (before := _visitor(manifest)) is not None:
        headers = settings.explore.headers.items()
        current["headers"] = {name: value for name, value in headers if name.lower() in before["headers"]}
        for name, used in (("storage_state", before["session"]), ("basic_auth", before["basic_auth"])):
            if not used:
                current[name] = ExploreSettings.model_fields[name].default
    profile = {name: value for name, value in manifest.capture.items() if name in CaptureProfile.model_fields}
    if _OUR_AGENT in str(profile.get("user_agent", "")):
        profile["user_agent"] = ""
    return settings.model_copy(
        update={
            "explore": ExploreSettings.model_validate({**fields, **current}),
            "capture": CaptureProfile.model_validate(profile),
        }
    )


def encoding_of(manifest: Manifest, encode: EncodeSettings) -> EncodeSettings:
    """What encodes a map as it is; of a model in a folder the map has only the name, so that `encode` must find it."""
    known = {name: value for name, value in manifest.settings.get("encode", {}).items() if name in _OF_VECTORS}
    if not known.get("encoder"):
        return encode
    if known["encoder"] == public_name(encode.encoder):
        known["encoder"] = encode.encoder
    elif "encoder" in encode.model_fields_set:
        known["weights"] = None  # those that were given are another one's
    return encode.model_copy(update=known)


def encoding_of_run(manifests: Iterable[Manifest], encode: EncodeSettings) -> EncodeSettings:
    """What encodes maps that are refreshed together: the encoder that was named, else that of most of them."""
    each = (encoding_of(manifest, encode) for manifest in manifests)
    named = "encoder" in encode.model_fields_set
    counts = Counter(found for found in each if not named or found.encoder == encode.encoder)
    return max(counts, key=counts.__getitem__, default=encode)


def check(manifest: Manifest, settings: Settings) -> None:
    """Refuse a refresh that would publish something else than what the map is. A map that says nothing passes.

    Parameters
    ----------
    settings : of the run, for this site.

    Raises
    ------
    TermsDiffer
        When the site would be visited by somebody else: without the session, password, headers or rules.
    EncoderMismatch
        When its states would be encoded by another encoder.
    """
    if missing := [*_missing(manifest, settings.explore)]:
        raise TermsDiffer(
            f"The map of {manifest.site} was made with {', '.join(missing)}, which this refresh was not given. "
            f"Version {manifest.version} stays.",
            hint="Give it, see waygraph refresh --help, or map the site anew as it is without: waygraph index "
            f"{manifest.start_url}",
        )
    wanted = encoding_of(manifest, settings.encode)
    if wanted != settings.encode:
        raise EncoderMismatch(
            f"The map of {manifest.site} was encoded by {_named(wanted)}, this refresh encodes by "
            f"{_named(settings.encode)}. Version {manifest.version} stays.",
            hint=f"Refresh it with --encoder {wanted.encoder}. Another encoder: waygraph reencode {manifest.site}",
        )


def differences(manifest: Manifest, settings: Settings) -> Iterator[str]:
    """In what a refresh that `check` lets through is not as the map was made, and what cannot be told."""
    before, now = _visitor(manifest), visitor(settings.explore)
    if before is None:
        yield (
            f"Version {manifest.version} is of an earlier waygraph, and does not say whether it was made with a "
            f"session, headers or rules: it is refreshed with what was given."
        )
        return
    more = [*(name for name in now["headers"] if name not in before["headers"])]
    more += [name for name in ("session", "basic_auth") if now[name] and not before[name]]
    if more:
        yield f"Given, and not used, since version {manifest.version} was made without: {', '.join(more)}."
    if manifest.settings.get("rules", "") != rules_digest(settings.explore.rules, manifest.site):
        yield f"The rules for {manifest.site} are not those that version {manifest.version} was made with."


def _visitor(manifest: Manifest) -> dict[str, Any] | None:
    """Who visited for a version; nothing when it does not say."""
    known = manifest.settings.get("visitor")
    return known if isinstance(known, dict) else None


def _missing(manifest: Manifest, explore: ExploreSettings) -> Iterator[str]:
    before, now = _visitor(manifest), visitor(explore)
    if before is None:
        return
    if before["session"] and not now["session"]:
        yield "a session (--storage-state)"
    if before["basic_auth"] and not now["basic_auth"]:
        yield "a password (--basic-auth-file)"
    yield from (f"the header '{name}' (--header)" for name in before["headers"] if name not in now["headers"])
    if manifest.settings.get("rules") and explore.rules is None:
        yield "rules (--rules)"


def _named(encode: EncodeSettings) -> str:
    details = [f"{name} {value}" for name in _OF_VECTORS[1:] if (value := getattr(encode, name)) not in {None, "auto"}]
    return ", ".join([public_name(encode.encoder), *details])
