"""Asking a model about the pages of a map, and publishing the map with what it says."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from waygraph.agents.describe.journal import ReplyJournal
from waygraph.agents.describe.plan import DescriptionPlan, Subject
from waygraph.agents.describe.prompt import PageReply
from waygraph.agents.models.budget import ModelBudget
from waygraph.agents.models.chat import ChatModel, ChatReply
from waygraph.agents.models.structured import complete_as, parse_reply
from waygraph.core.errors import BadModelReply, ContextTooLong, EncoderMismatch, WaygraphError
from waygraph.core.settings import Settings
from waygraph.index.graph import Description
from waygraph.index.store import Manifest, MapVersion, Store
from waygraph.index.vectors.multivector import EncodedPage
from waygraph.pipeline.encode.protocol import Encoder
from waygraph.pipeline.encode.registry import create_encoder
from waygraph.pipeline.encode.text.anchor_text import with_anchor_texts
from waygraph.pipeline.encode.text.descriptions import with_descriptions
from waygraph.pipeline.encode.text.lead_text import lead_observations, rounded_page
from waygraph.pipeline.encode.text.weights import MODELS
from waygraph.pipeline.jobs.publishing.draft import described_draft


@dataclass(slots=True)
class Asked:
    """What came of asking.

    Attributes
    ----------
    descriptions
        New descriptions by node id.
    replayed
        Number of subjects that were answered from the journal.
    failures
        By the id of the state that was shown, why there is no description.
    stopped_by
        The error after which nothing more was asked; None: everything was asked, or asking was interrupted.
    """

    descriptions: dict[str, Description] = field(default_factory=dict)
    replayed: int = 0
    failures: dict[str, str] = field(default_factory=dict)
    stopped_by: WaygraphError | None = None


async def ask(
    plan: DescriptionPlan,
    model: ChatModel,
    journal: ReplyJournal,
    *,
    name: str,
    concurrency: int = 1,
    stop: asyncio.Event | None = None,
    on_progress: Callable[[int, int], None] = lambda _done, _subjects: None,
) -> Asked:
    """Ask a model about all subjects of a plan; each reply is in the journal before the next call starts.

    Parameters
    ----------
    plan
        What to ask.
    model
        The model, with its budget.
    journal
        Replies that were paid for earlier, and those of this call.
    name
        Name of the model, kept with what it says.
    concurrency
        Calls at the same time.
    stop
        When it is set, no further call starts; those that run are waited for, since they are paid for.
    on_progress
        Called with the number of subjects that are done, and of all.

    Returns
    -------
    Asked
        Descriptions, failures of single pages, and the error that ended asking, if one did.
    """
    asked = Asked()
    waiting = deque(plan.subjects)

    def is_stopped() -> bool:
        return asked.stopped_by is not None or (stop is not None and stop.is_set())

    async def work() -> None:
        while waiting and not is_stopped():
            subject = waiting.popleft()
            try:
                reply = await _reply(subject, model, journal, name, asked)
            except (BadModelReply, ContextTooLong) as error:  # of this page; others may do
                asked.failures[subject.states[0]] = error.message
            except WaygraphError as error:
                asked.stopped_by = asked.stopped_by or error
                return
            else:
                asked.descriptions |= _descriptions(subject, reply, name)
            on_progress(len(plan.subjects) - len(waiting), len(plan.subjects))

    async with asyncio.TaskGroup() as group:
        for _ in range(concurrency):
            group.create_task(work())
    return asked


def take_replies(plan: DescriptionPlan, replies: Mapping[str, ChatReply], budget: ModelBudget) -> Asked:
    """Take descriptions from replies that a batch service gave.

    Parameters
    ----------
    plan
        What was asked.
    replies
        Replies by the digest of their subject, with the names of their models. Those of other subjects are ignored.
    budget
        What the replies took is charged to it; it limits nothing, since they are paid for.

    Returns
    -------
    Asked
        Descriptions, and failures: subjects without a reply, or with one of another form.
    """
    asked = Asked()
    for subject in plan.subjects:
        reply = replies.get(subject.digest)
        if reply is None:
            asked.failures[subject.states[0]] = "There is no reply about it."
            continue
        budget.charge(reply.usage)
        try:
            parsed = parse_reply(reply, PageReply)
        except BadModelReply as error:
            asked.failures[subject.states[0]] = error.message
        else:
            asked.descriptions |= _descriptions(subject, parsed, reply.usage.model)
    return asked


async def _reply(subject: Subject, model: ChatModel, journal: ReplyJournal, name: str, asked: Asked) -> PageReply:
    if (known := journal.get(subject.digest, name)) is not None:
        asked.replayed += 1
        return known
    reply, last = await complete_as(model, subject.request, PageReply)
    journal.add(subject.digest, name, reply, last.usage)
    return reply


def _descriptions(subject: Subject, reply: PageReply, name: str) -> dict[str, Description]:
    return {
        node_id: Description(
            reply.description,
            reply.search_texts,
            name,
            subject.keys[node_id],
            subject.kind,
        )
        for node_id in subject.states
    }


class TextEncoders:
    """The encoders that made the vectors of maps, each loaded once.

    Parameters
    ----------
    settings
        Weights of the encoders.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._loaded: dict[str, Encoder] = {}

    def of(self, manifest: Manifest) -> Encoder | None:
        """Return the encoder that made the vectors of a map.

        Parameters
        ----------
        manifest
            Manifest of the map.

        Returns
        -------
        Encoder or None
            None if the map has no vectors of texts: its descriptions are shown and not searched.

        Raises
        ------
        EncoderMismatch
            If the weights are not those that made the map.
        WeightsMissing
            If there are no weights.
        """
        made_by = manifest.encoder
        if made_by.name not in MODELS:
            return None
        if made_by.name not in self._loaded:
            self._loaded[made_by.name] = create_encoder(
                self._settings.encode.model_copy(update={"encoder": made_by.name})
            )
        encoder = self._loaded[made_by.name]
        if encoder.fingerprint != made_by.fingerprint:
            raise EncoderMismatch(
                f"The map of '{manifest.site}' was made by another '{made_by.name}' ({made_by.fingerprint}) "
                f"than this one ({encoder.fingerprint}): its weights or code differ.",
                hint=f"Re-encode the map first: waygraph reencode {manifest.site}",
            )
        return encoder


def publish(
    store: Store, version: MapVersion, descriptions: Mapping[str, Description], encoder: Encoder | None
) -> int | None:
    """Publish a map with descriptions. Only states and leads whose description changed are encoded.

    Parameters
    ----------
    store
        The store.
    version
        The current version of the map.
    descriptions
        All descriptions of the new version, by node id.
    encoder
        See `TextEncoders.of`.

    Returns
    -------
    int or None
        Number of the new version; None if the map has these descriptions already.

    Raises
    ------
    PublishConflict
        If another version became the current one.
    """
    if dict(descriptions) == dict(version.descriptions):
        return None
    pages, lead_pages = dict(version.pages), dict(version.lead_pages)
    if encoder is not None:
        pages |= _encoded(version, descriptions, encoder)
        lead_pages |= _encoded_leads(version, descriptions, encoder)
    draft = described_draft(version, descriptions, pages, lead_pages)
    return store.publish(draft, replaces=version.manifest.version)


def _encoded(version: MapVersion, descriptions: Mapping[str, Description], encoder: Encoder) -> dict[str, EncodedPage]:
    before = version.descriptions
    changed = {
        node_id
        for node_id in version.pages
        if _texts(before, node_id) != _texts(descriptions, node_id) and node_id in version.observations
    }
    anchored = with_anchor_texts(version.graph, version.observations.values())
    described = with_descriptions({each.node_id: each for each in anchored if each.node_id in changed}, descriptions)
    encoded = encoder.encode_pages(list(described.values()), version.manifest.encoder.context)
    return dict(zip(described, encoded, strict=True))


def _encoded_leads(
    version: MapVersion, descriptions: Mapping[str, Description], encoder: Encoder
) -> dict[str, EncodedPage]:
    before = version.descriptions
    leads = [each for each in version.leads.values() if _texts(before, each.id) != _texts(descriptions, each.id)]
    seen = {each.node_id: each for each in lead_observations(leads, version.observations.values())}
    encoded = encoder.encode_pages(
        list(with_descriptions(seen, descriptions).values()), version.manifest.encoder.context
    )
    return {name: rounded_page(page) for name, page in zip(seen, encoded, strict=True)}


def _texts(descriptions: Mapping[str, Description], node_id: str) -> tuple[str, ...]:
    return descriptions[node_id].texts if node_id in descriptions else ()
