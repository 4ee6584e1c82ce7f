"""Provenance of maps: the settings, session, rules and encoder of a version, and whether a refresh has the same."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from waygraph.core.errors import EncoderMismatch, NotFound, ProvenanceMismatch, StoreError
from waygraph.core.settings import CaptureProfile, EncodeSettings, ExploreSettings, Settings
from waygraph.index.store import Manifest, Store
from waygraph.index.store.backends.concurrency import concurrent_map
from waygraph.pipeline.encode.runtime.model_files import public_name
from waygraph.pipeline.explore.policies.blocklist import rules_digest
from waygraph.pipeline.explore.shaping import visitor

#: Explore settings of the run that are not part of a map: they shape no graph, or must not be stored.
_RUN_SETTINGS = {
    "workers", "max_seconds", "max_bytes", "resume", "headers", "basic_auth", "proxy", "contact", "storage_state",
    "rules", "delay_seconds", "max_delay_seconds", "page_seconds",
}  # fmt: skip
#: Encode settings that decide vectors. Location of weights and device belong to the machine.
_VECTOR_SETTINGS = ("encoder", "dtype", "max_pixels")
#: Part of the default user agent.
_DEFAULT_AGENT = " waygraph/"


def load_current_manifests(store: Store, sites: Iterable[str]) -> dict[str, Manifest]:
    """Read the current manifests by site, in the given order, concurrently. Unreadable ones are left out."""

    def read(site: str) -> Manifest | None:
        try:
            return store.manifest(site)
        except (NotFound, StoreError):
            return None  # the explorer of the site reads it again and reports the error

    keys = list(dict.fromkeys(sites))
    found = zip(keys, concurrent_map(read, keys), strict=True)
    return {site: manifest for site, manifest in found if manifest is not None}


def settings_for_refresh(manifest: Manifest, settings: Settings) -> Settings:
    """Return the settings that a version was made with, with run settings from `settings`.

    A session, headers or a password that the map was made without are left out, so that the map keeps showing what
    the same visitor sees.
    """
    known = {name: value for name, value in manifest.settings.get("explore", {}).items() if name not in _RUN_SETTINGS}
    fields = {name: value for name, value in known.items() if name in ExploreSettings.model_fields}
    if known:
        fields.setdefault("order", "breadth")  # versions without an order are older than that setting
    current = {name: getattr(settings.explore, name) for name in _RUN_SETTINGS}
    if (before := _visitor(manifest)) is not None:
        headers = settings.explore.headers.items()
        current["headers"] = {name: value for name, value in headers if name.lower() in before["headers"]}
        for name, used in (("storage_state", before["session"]), ("basic_auth", before["basic_auth"])):
            if not used:
                current[name] = ExploreSettings.model_fields[name].default
    profile = {name: value for name, value in manifest.capture.items() if name in CaptureProfile.model_fields}
    if _DEFAULT_AGENT in str(profile.get("user_agent", "")):
        profile["user_agent"] = ""
    return settings.model_copy(
        update={
            "explore": ExploreSettings.model_validate({**fields, **current}),
            "capture": CaptureProfile.model_validate(profile),
        }
    )


def encode_settings_of_map(manifest: Manifest, encode: EncodeSettings) -> EncodeSettings:
    """Return the encode settings of a map. For a model in a folder the map has only the name; `encode` has the path."""
    known = {name: value for name, value in manifest.settings.get("encode", {}).items() if name in _VECTOR_SETTINGS}
    if not known.get("encoder"):
        return encode
    if known["encoder"] == public_name(encode.encoder):
        known["encoder"] = encode.encoder
    elif "encoder" in encode.model_fields_set:
        known["weights"] = None  # the given weights belong to another encoder
    return encode.model_copy(update=known)


def encode_settings_for_run(manifests: Iterable[Manifest], encode: EncodeSettings) -> EncodeSettings:
    """Return the encode settings of a refresh run: of the named encoder, else of the encoder of most maps."""
    each = (encode_settings_of_map(manifest, encode) for manifest in manifests)
    named = "encoder" in encode.model_fields_set
    counts = Counter(found for found in each if not named or found.encoder == encode.encoder)
    return max(counts, key=counts.__getitem__, default=encode)


def check_provenance(manifest: Manifest, settings: Settings) -> None:
    """Refuse a refresh whose provenance differs from that of the map. Maps without provenance pass.

    Parameters
    ----------
    manifest
        Manifest of the current version.
    settings
        Settings of the run for this site.

    Raises
    ------
    ProvenanceMismatch
        If the session, password, headers or rules of the map are missing.
    EncoderMismatch
        If the encoder differs.
    """
    if missing := [*_missing(manifest, settings.explore)]:
        raise ProvenanceMismatch(
            f"The map of {manifest.site} was made with {', '.join(missing)}, which this refresh lacks. "
            f"Version {manifest.version} stays.",
            hint="Pass it, see waygraph refresh --help, or map the site again without it: waygraph index "
            f"{manifest.start_url}",
        )
    expected = encode_settings_of_map(manifest, settings.encode)
    if expected != settings.encode:
        raise EncoderMismatch(
            f"The map of {manifest.site} was encoded by {_encoder_label(expected)}, this refresh encodes by "
            f"{_encoder_label(settings.encode)}. Version {manifest.version} stays.",
            hint=f"Refresh it with --encoder {expected.encoder}. Another encoder: waygraph reencode {manifest.site}",
        )


def describe_differences(manifest: Manifest, settings: Settings) -> Iterator[str]:
    """Yield the differences that `check_provenance` tolerates, and those that cannot be determined."""
    before, now = _visitor(manifest), visitor(settings.explore)
    if before is None:
        yield (
            f"Version {manifest.version} was made by an earlier waygraph and does not say whether it had a session, "
            f"headers or rules: it is refreshed with the given ones."
        )
        return
    more = [*(name for name in now["headers"] if name not in before["headers"])]
    more += [name for name in ("session", "basic_auth") if now[name] and not before[name]]
    if more:
        yield f"Given but not used, since version {manifest.version} was made without: {', '.join(more)}."
    if manifest.settings.get("rules", "") != rules_digest(settings.explore.rules, manifest.site):
        yield f"The rules for {manifest.site} differ from those of version {manifest.version}."


def _visitor(manifest: Manifest) -> dict[str, Any] | None:
    """Return the kind of visitor of a version, or None if it is not recorded."""
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


def _encoder_label(encode: EncodeSettings) -> str:
    details = [
        f"{name} {value}" for name in _VECTOR_SETTINGS[1:] if (value := getattr(encode, name)) not in {None, "auto"}
    ]
    return ", ".join([public_name(encode.encoder), *details])
