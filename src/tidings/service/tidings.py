"""The service: a home folder with its store, and what can be asked of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from threading import Event
from types import NoneType

from tidings.core.arguments import accepts, checks_arguments
from tidings.core.atomic_files import private_folder
from tidings.core.lifecycle import Closeable
from tidings.errors import InputError, SetupError
from tidings.events.schema.event_schema import EventSchema
from tidings.events.schema.extension import ExtensionResult, extend
from tidings.events.schema.files import parts_of_text
from tidings.feeds.outbound.addresses import FeedTokens, create_feed_urls, load_feed_key
from tidings.feeds.outbound.personal_feeds import PersonalFeeds
from tidings.graphs.taxonomy import Taxonomy
from tidings.kinds import JSON
from tidings.model import Notification, Reject, Subscription
from tidings.objects.model.class_model import Model
from tidings.objects.notices import ObjectChange, build_notices
from tidings.objects.propagation import Object
from tidings.objects.sql.object_store import NotificationOutcome
from tidings.reference_data.declarations import Reference
from tidings.service import ingest, reference_data
from tidings.service.preview import PreviewTables
from tidings.service.reference_data import DeclaredReference, LoadedTaxonomy, SchemaSnapshot, TaxonomySnapshot
from tidings.service.submission import UNLIMITED, Submission, parse_bodies
from tidings.service.subscriptions import (
    AcceptedSubscription,
    SubscriptionLimits,
    SubscriptionService,
    build_wanted,
)
from tidings.store.database import sqlite_url
from tidings.store.dead_letters import DeadLetter
from tidings.store.delayed_notifications import DelayedSummary
from tidings.store.journal import AppendResult
from tidings.store.store import Store, open_store
from tidings.store.subscriptions.view import RULES

_JSON = "an event is JSON: json.dumps(event)"


@checks_arguments
class Tidings(Closeable):
    """A home folder with its store; `store_url` names another store than the folder's own.

    The store is opened when it is first needed and closed at the end of a `with`, or by `close`.
    """

    @accepts(home=(str, Path), store_url=(str, NoneType), migrates=bool)
    def __init__(self, home: Path | str, store_url: str | None = None, migrates: bool = True) -> None:
        self.home = Path(home)
        self._given_url = store_url
        self._migrates = migrates

    @property
    def store_url(self) -> str:
        """The store's address, for processes that open it themselves."""
        return self._given_url or sqlite_url(self.home / "store.db")

    @property
    def segments(self) -> Path:
        """The folder of the index."""
        return self.home / "segments"

    @property
    def checkpoint(self) -> Path:
        """The folder in which the stream keeps how far it is."""
        return self.home / "checkpoint"

    @cached_property
    def store(self) -> Store:
        if self._given_url is None:
            make_folder(self.home)
        return open_store(self.store_url, migrates=self._migrates)

    @cached_property
    def preview_tables(self) -> PreviewTables:
        """What previews join publications with."""
        return PreviewTables(self.store, self.segments / "references")

    @accepts(subscriber=str, text=str, language=str, id=(str, NoneType), within=(str, NoneType))
    def subscribe(
        self,
        subscriber: str,
        text: str,
        language: str = "predicates",
        id: str | None = None,
        within: str | None = None,
    ) -> AcceptedSubscription:
        """Take a subscription, or refuse it with the reason; it counts from the stream's next batch on.

        `within` is a delay that the subscriber accepts, `10 minutes` say: what is found is gathered and handed over
        together, no later than that.
        """
        return self.subscribing().subscribe(build_wanted(subscriber, text, language, id, within))

    @accepts(ids=Iterable, subscriber=(str, NoneType))
    def unsubscribe(self, ids: Iterable[str] | str, subscriber: str | None = None) -> list[str]:
        """Withdraw subscriptions, only the subscriber's own if one is given; the ids that were found."""
        return self.subscribing().remove([ids] if isinstance(ids, str) else ids, subscriber)

    def subscribing(self, limited: SubscriptionLimits | None = None) -> SubscriptionService:
        """The subscriptions of all languages: to be checked, taken, changed, paused, resumed, withdrawn."""
        return SubscriptionService(self.store, self.checked_against, self.taxonomy, limited)

    def subscriptions(self, subscriber: str | None = None) -> Sequence[Subscription]:
        """The subscriptions that count now, oldest first; then the rules over metadata, by name."""
        rules = [
            Subscription(rule.name, rule.owner, RULES, rule.text, rule.within)
            for rule in self.store.metadata.rules()
            if subscriber in (None, rule.owner)
        ]
        return [*self.store.subscriptions.list(subscriber), *rules]

    @accepts(_JSON, body=(bytes, str), id=(str, NoneType), base=(str, NoneType), audience=(str, NoneType))
    def publish(
        self,
        body: bytes | str,
        id: str | None = None,
        media_type: str = JSON,
        base: str | None = None,
        audience: str | None = None,
    ) -> AppendResult:
        """Append a publication to the journal, or raise the reason why it is rejected; it is durable on return.

        The same id with the same body is the same publication. Relative IRIs of a graph are resolved against `base`;
        the graph is then stored as N-Triples. `audience` is a label: only subscribers who were granted it are notified
        and see the publication. Without a label everyone may.
        """
        data = body.encode("utf-8", "surrogatepass") if isinstance(body, str) else body
        submission = Submission(data, media_type, id, None, base, audience, limits=UNLIMITED, is_single=True)
        [result] = self._publish(submission)
        return result

    def publish_parts(
        self,
        body: bytes,
        media_type: str,
        id: str | None = None,
        base: str | None = None,
        audience: str | None = None,
    ) -> list[AppendResult]:
        """Publish each publication in a body, such as the items of a feed: all of them or none.

        If `id` is given, their ids are numbered: `id-1`, `id-2`.
        """
        return self._publish(Submission(body, media_type, id, None, base, audience, limits=UNLIMITED))

    def _publish(self, submission: Submission) -> list[AppendResult]:
        outcomes = ingest.publish(self.store, submission, self.checked_against())
        return [outcome for outcome in outcomes if isinstance(outcome, AppendResult)]

    def publish_many(
        self,
        bodies: Iterable[bytes],
        id_field: str | None = None,
        media_type: str = JSON,
        audience: str | None = None,
    ) -> Iterator[AppendResult | Reject]:
        """Publish many bodies, and yield an outcome for each in order: its position, or why it was rejected.

        Outcomes come in chunks, and are durable when they come. With `id_field` the id of a publication is the value in
        that field. All have the label `audience`, or each the one that it claims itself, as a CloudEvent.
        """
        submission = Submission(b"", media_type, None, id_field, limits=UNLIMITED)
        items = parse_bodies(bodies, media_type, submission)
        outcomes = ingest.publish_stream(self.store, items, self.checked_against, audience)
        for number, outcome in enumerate(outcomes, start=1):
            if isinstance(outcome, InputError):
                yield Reject("publication", f"line {number}", str(outcome), outcome.facts())
            else:
                yield outcome

    def tell(
        self,
        source: str,
        model: Model,
        noticed: Iterable[ObjectChange],
        labels: Mapping[Object, str],
        tell_author: bool = False,
    ) -> NotificationOutcome:
        """Tell whom changes of objects concern, in the order of the changes; all of it is durable on return.

        Nobody is told twice of a change that comes again. Whoever made one is left out, unless `tell_author`.
        """
        told = (each for one in noticed for each in build_notices(source, model, one, labels, tell_author))
        return self.store.object_notifications.tell(source, told)

    @accepts(subscriber=str, after=int, limit=int)
    def notifications(self, subscriber: str, after: int = 0, limit: int = 1_000) -> list[Notification]:
        """A subscriber's notifications after a sequence number, in order."""
        return self.store.notifications.read(subscriber, after, limit)

    def held(self, subscriber: str) -> DelayedSummary:
        """What waits for a subscriber, because of the delays accepted, and until when."""
        return self.store.notifications.held(subscriber)

    @accepts(subscriber=str, after=int)
    def follow(self, subscriber: str, after: int = 0, stop: Event | None = None) -> Iterator[Notification]:
        """A subscriber's notifications as they come, until `stop` is set."""
        return self.store.notifications.follow(subscriber, after, stop)

    def feeds_at(self, public_url: str) -> PersonalFeeds:
        """The feeds of all subscriptions, as readers find them below a public address."""
        return PersonalFeeds(
            self.store, FeedTokens(self.store, load_feed_key(self.home)), create_feed_urls(public_url)
        )

    def dead_letters(self, after: int = 0, limit: int = 1_000) -> list[DeadLetter]:
        """Publications that could not be used, in the order in which that was found."""
        return self.store.dead_letters.read(after, limit)

    def add_reference(
        self, name: str, file: str, key: str, on: str, fields: Iterable[str] = ()
    ) -> DeclaredReference:
        """Declare a reference table, or refuse it with the reason; it counts from the stream's next batch on.

        A name that is taken gets the new declaration in place of the old one.
        """
        return reference_data.add_reference(self.store, name, file, key, on, fields)

    def remove_reference(self, name: str) -> bool:
        """Withdraw a reference table, and say whether there was one of this name."""
        return self.store.references.remove(name)

    def references(self) -> Sequence[Reference]:
        """The reference tables that are declared."""
        return self.store.references.load()

    def load_taxonomy(
        self, name: str, body: bytes, media_type: str, base: str | None = None
    ) -> LoadedTaxonomy:
        """Load an RDFS file, or refuse it with the reason; it counts from the stream's next batch on.

        It stands beside those loaded before, in the place of one with the same name. Classes or properties that would
        stand above themselves, in it or together with the others, are refused.
        """
        return reference_data.load_taxonomy(self.store, name, body, media_type, base)

    def remove_taxonomy(self, name: str) -> bool:
        """Forget a taxonomy, and say whether there was one of this name."""
        return self.store.taxonomies.remove(name)

    def taxonomies(self) -> list[LoadedTaxonomy]:
        """The taxonomies that are loaded."""
        return reference_data.list_taxonomies(self.store)

    def taxonomy(self) -> Taxonomy:
        """All loaded taxonomies as one. They are read again when there is another one."""
        version, known = self.store.taxonomies.version(), self.taxonomy_read
        if known is None or known.version != version:
            known = self.taxonomy_read = TaxonomySnapshot(
                version, reference_data.read_whole_taxonomy(self.store)
            )
        return known.taxonomy

    taxonomy_read: TaxonomySnapshot | None = None
    """The taxonomies that were read last; there may be others by now."""

    def schema(self) -> EventSchema:
        """The event schema; empty when there is none."""
        return self.schema_now().schema

    def schema_now(self) -> SchemaSnapshot:
        """The same with its version. It is read again when there is another one."""
        version, known = self.store.schemas.version(), self.schema_read
        if known is None or known.version != version:
            known = self.schema_read = SchemaSnapshot(version, self.store.schemas.load())
        return known

    schema_read: SchemaSnapshot | None = None
    """The one that was read last; there may be another one by now."""

    @accepts("a schema is a text in YAML", text=str)
    def extend_schema(self, text: str) -> ExtensionResult:
        """Extend the event schema by what a YAML text says, or refuse what is no extension.

        The first schema says which attributes there are. Subscriptions that ask about others would never match
        again, without a word: they have to be withdrawn first.
        """
        self.try_schema(text)
        return self.store.schemas.extend(parts_of_text(text))

    def try_schema(self, text: str) -> ExtensionResult:
        """What `extend_schema` would make of a text, or the same refusal; nothing is kept."""
        extended = extend(self.schema(), parts_of_text(text))
        if extended.changes:
            reference_data.refuse_orphans(self.store, extended.schema)
        return extended

    def checked_against(self) -> EventSchema | None:
        """The event schema, if there is one."""
        return self.schema_now().checked_against

    def close(self) -> None:
        if "store" in self.__dict__:
            self.store.close()
            del self.store


def make_folder(folder: Path) -> Path:
    """The folder, made if it is not there, for its owner alone."""
    try:
        private_folder(folder)
    except OSError as error:
        raise SetupError(
            f"the folder cannot be made: {error.strerror}",
            where=str(folder),
            hint="choose another one with --home, or correct its permissions",
        ) from error
    return folder
