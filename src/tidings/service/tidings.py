"""Entry point of the library: a home folder with its store, and the operations on it."""

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
from tidings.ingest import publisher
from tidings.ingest.submission import UNLIMITED, Submission, parse_bodies
from tidings.kinds import JSON
from tidings.model import Notification, Reject, Subscription
from tidings.objects.model.class_model import Model
from tidings.objects.notices import ObjectChange, build_notices
from tidings.objects.propagation import Object
from tidings.objects.sql.object_store import NotificationOutcome
from tidings.reference_data.declarations import Reference
from tidings.service import reference_data
from tidings.service.preview import PreviewTables
from tidings.service.reference_data import DeclaredReference, LoadedTaxonomy, SchemaSnapshot, TaxonomySnapshot
from tidings.service.subscriptions import (
    AcceptedSubscription,
    SubscriptionLimits,
    SubscriptionService,
    build_wanted,
)
from tidings.store.database import sqlite_url
from tidings.store.dead_letters import DeadLetter
from tidings.store.journal import AppendResult
from tidings.store.notifications.deferred_notifications import DeferredSummary
from tidings.store.store import Store, open_store
from tidings.store.subscriptions.view import RULES

_JSON = "an event is JSON: json.dumps(event)"


@checks_arguments
class Tidings(Closeable):
    """A home folder with its store; `store_url` is the address of a store elsewhere.

    The store is opened on first use and closed at the end of a `with` block, or by `close`.
    """

    @accepts(home=(str, Path), store_url=(str, NoneType), migrates=bool)
    def __init__(self, home: Path | str, store_url: str | None = None, migrates: bool = True) -> None:
        self.home = Path(home)
        self._given_url = store_url
        self._migrates = migrates

    @property
    def store_url(self) -> str:
        """Address of the store, for processes that open it themselves."""
        return self._given_url or sqlite_url(self.home / "store.db")

    @property
    def segments(self) -> Path:
        """Folder of the index."""
        return self.home / "segments"

    @property
    def checkpoint(self) -> Path:
        """Folder of the stream's checkpoint."""
        return self.home / "checkpoint"

    @cached_property
    def store(self) -> Store:
        if self._given_url is None:
            make_folder(self.home)
        return open_store(self.store_url, migrates=self._migrates)

    @cached_property
    def preview_tables(self) -> PreviewTables:
        """Reference tables that previews join publications with."""
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
        """Add a subscription, or raise the reason why it is rejected; it matches from the stream's next batch on.

        `within` is the delay that the subscriber accepts, for example `10 minutes`: notifications are batched for up to
        that long.
        """
        return self.subscribing().subscribe(build_wanted(subscriber, text, language, id, within))

    @accepts(ids=Iterable, subscriber=(str, NoneType))
    def unsubscribe(self, ids: Iterable[str] | str, subscriber: str | None = None) -> list[str]:
        """Remove subscriptions, with `subscriber` only those of that subscriber; return the ids that existed."""
        return self.subscribing().remove([ids] if isinstance(ids, str) else ids, subscriber)

    def subscribing(self, limited: SubscriptionLimits | None = None) -> SubscriptionService:
        """Return the service that checks, adds, changes, pauses, resumes and removes subscriptions."""
        return SubscriptionService(self.store, self.checked_against, self.taxonomy, limited)

    def subscriptions(self, subscriber: str | None = None) -> Sequence[Subscription]:
        """List the active subscriptions, oldest first, then the rules over metadata, by name."""
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
        outcomes = publisher.publish(self.store, submission, self.checked_against())
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
        outcomes = publisher.publish_stream(self.store, items, self.checked_against, audience)
        for number, outcome in enumerate(outcomes, start=1):
            if isinstance(outcome, InputError):
                yield Reject("publication", f"line {number}", str(outcome), outcome.facts())
            else:
                yield outcome

    def notify_of_changes(
        self,
        source: str,
        model: Model,
        changes: Iterable[ObjectChange],
        labels: Mapping[Object, str],
        notify_author: bool = False,
    ) -> NotificationOutcome:
        """Notify the subscribers of changes of objects, in the order of the changes; durable on return.

        A repeated change causes no second notification. Its author is notified only with `notify_author`.
        """
        notices = (
            notice
            for change in changes
            for notice in build_notices(source, model, change, labels, notify_author)
        )
        return self.store.object_notifications.add(source, notices)

    @accepts(subscriber=str, after=int, limit=int)
    def notifications(self, subscriber: str, after: int = 0, limit: int = 1_000) -> list[Notification]:
        """Read a subscriber's notifications after a sequence number, in order."""
        return self.store.notifications.read(subscriber, after, limit)

    def deferred(self, subscriber: str) -> DeferredSummary:
        """Summarise a subscriber's deferred notifications (`within`), and until when."""
        return self.store.notifications.deferred(subscriber)

    @accepts(subscriber=str, after=int)
    def follow(self, subscriber: str, after: int = 0, stop: Event | None = None) -> Iterator[Notification]:
        """Yield a subscriber's notifications as they arrive, until `stop` is set."""
        return self.store.notifications.follow(subscriber, after, stop)

    def feeds_at(self, public_url: str) -> PersonalFeeds:
        """Return the feeds of all subscriptions below a public address."""
        return PersonalFeeds(
            self.store, FeedTokens(self.store, load_feed_key(self.home)), create_feed_urls(public_url)
        )

    def dead_letters(self, after: int = 0, limit: int = 1_000) -> list[DeadLetter]:
        """Read the publications that could not be processed, in the order in which they failed."""
        return self.store.dead_letters.read(after, limit)

    def add_reference(
        self, name: str, file: str, key: str, on: str, fields: Iterable[str] = ()
    ) -> DeclaredReference:
        """Declare a reference table, or raise the reason why it is rejected; the stream's next batch uses it.

        A table of the same name is replaced.
        """
        return reference_data.add_reference(self.store, name, file, key, on, fields)

    def remove_reference(self, name: str) -> bool:
        """Remove a reference table; return whether it existed."""
        return self.store.references.remove(name)

    def references(self) -> Sequence[Reference]:
        """List the declared reference tables."""
        return self.store.references.load()

    def load_taxonomy(
        self, name: str, body: bytes, media_type: str, base: str | None = None
    ) -> LoadedTaxonomy:
        """Load an RDFS file, or raise the reason why it is rejected; the stream's next batch uses it.

        A taxonomy of the same name is replaced, others stay loaded. A cycle of classes or properties, in the file or
        together with the others, is an error.
        """
        return reference_data.load_taxonomy(self.store, name, body, media_type, base)

    def remove_taxonomy(self, name: str) -> bool:
        """Remove a taxonomy; return whether it existed."""
        return self.store.taxonomies.remove(name)

    def taxonomies(self) -> list[LoadedTaxonomy]:
        """List the loaded taxonomies."""
        return reference_data.list_taxonomies(self.store)

    def taxonomy(self) -> Taxonomy:
        """Return all loaded taxonomies as one, cached by version."""
        version, cached = self.store.taxonomies.version(), self.taxonomy_read
        if cached is None or cached.version != version:
            cached = self.taxonomy_read = TaxonomySnapshot(
                version, reference_data.read_whole_taxonomy(self.store)
            )
        return cached.taxonomy

    taxonomy_read: TaxonomySnapshot | None = None
    """The taxonomies as last read, which may be outdated."""

    def schema(self) -> EventSchema:
        """Return the event schema, which is empty if none was declared."""
        return self.schema_now().schema

    def schema_now(self) -> SchemaSnapshot:
        """Return the event schema and its version, cached by version."""
        version, cached = self.store.schemas.version(), self.schema_read
        if cached is None or cached.version != version:
            cached = self.schema_read = SchemaSnapshot(version, self.store.schemas.load())
        return cached

    schema_read: SchemaSnapshot | None = None
    """The schema as last read, which may be outdated."""

    @accepts("a schema is a text in YAML", text=str)
    def extend_schema(self, text: str) -> ExtensionResult:
        """Extend the event schema by a YAML text, or raise if it is not an extension.

        The first schema declares which attributes exist. Subscriptions with other attributes would silently never match
        again, so they have to be removed first.
        """
        self.try_schema(text)
        return self.store.schemas.extend(parts_of_text(text))

    def try_schema(self, text: str) -> ExtensionResult:
        """Return the result of `extend_schema`, or raise its error, without storing anything."""
        extended = extend(self.schema(), parts_of_text(text))
        if extended.changes:
            reference_data.check_subscriptions(self.store, extended.schema)
        return extended

    def checked_against(self) -> EventSchema | None:
        """Return the event schema to check against; None if there is none."""
        return self.schema_now().checked_against

    def close(self) -> None:
        if "store" in self.__dict__:
            self.store.close()
            del self.store


def make_folder(folder: Path) -> Path:
    """Create a folder that only its owner can read, unless it exists; return it."""
    try:
        private_folder(folder)
    except OSError as error:
        raise SetupError(
            f"the folder cannot be created: {error.strerror}",
            where=str(folder),
            hint="choose another one with --home, or correct its permissions",
        ) from error
    return folder
