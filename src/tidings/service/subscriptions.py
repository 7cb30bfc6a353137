"""Subscriptions of all languages: check, add, change, pause, resume, remove.

A changed subscription keeps its id: the stream replaces the old text by the new one in the same version. A paused one
keeps its id and text and matches nothing until it is resumed. When a rule is resumed, its subscriber is notified of the
difference between the last notified results and the current ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from tidings.core import durations
from tidings.delivery.sql.destination_store import Health as DeliveryHealth
from tidings.errors import IdConflict, InputError, NotFound, PublicationError, TextWarning, pointing
from tidings.events.schema.event_schema import EventSchema
from tidings.graphs.taxonomy import Taxonomy
from tidings.kinds import LANGUAGES, find_kind
from tidings.language_hints import hint_to_name
from tidings.matching.compiler.compilation import describe_access
from tidings.matching.compiler.language import DEFAULT_LIMIT, Context, Knowledge
from tidings.metadata.sql.metadata_reader import StoredRule
from tidings.model import Publication, Subscription
from tidings.store import names
from tidings.store.store import Store
from tidings.store.subscriptions.admission import id_conflict_error, limit_error, unwrap_outcome
from tidings.store.subscriptions.view import RULES, SubscriptionStatus

if TYPE_CHECKING:
    from tidings.metadata.provider.rule_subscriptions import RuleSubscriptions

__all__ = ["RULES", "AcceptedSubscription", "SubscriptionCheck", "SubscriptionLimits", "SubscriptionService"]


@dataclass(frozen=True, slots=True)
class AcceptedSubscription:
    """A subscription that was accepted.

    `predicates` counts its predicates, `reached_through` names the access keys of its clauses, `within` is the accepted
    delay in seconds, and `warnings` are about its text.
    """

    id: str
    subscriber: str
    language: str
    text: str
    predicates: int
    reached_through: str
    within: int | None = None
    warnings: tuple[TextWarning, ...] = ()


@dataclass(frozen=True, slots=True)
class SubscriptionCheck:
    """The result of checking a text, without a subscription being stored."""

    predicates: int
    reached_through: str
    warnings: tuple[TextWarning, ...] = ()


@dataclass(frozen=True, slots=True)
class SubscriptionLimits:
    """Limit of clauses per subscription, and of subscriptions per subscriber (`per_subscriber`); None is no limit."""

    clauses: int = DEFAULT_LIMIT
    per_subscriber: int | None = None


RECENT, LARGEST = 20, 64 * 1024
"""Number of recent publications for warnings, and the maximum size of one of them."""


class RecentPublications:
    """The last publications without an audience label, read and decoded on first use."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._decoded: dict[str, list[Any]] = {}

    @cached_property
    def _publications(self) -> list[Publication]:
        entries = self._store.journal.latest(None, RECENT, LARGEST)
        whole = [entry.publication for entry in entries if len(entry.publication.body) == entry.size]
        return [publication for publication in whole if publication.audience is None]

    def of(self, kind: str) -> list[Any]:
        """Return those of a kind, decoded. One that cannot be decoded is a dead letter already."""
        if kind not in self._decoded:
            self._decoded[kind] = [*self._decode(kind)]
        return self._decoded[kind]

    def _decode(self, kind_name: str) -> Iterator[Any]:
        for publication in self._publications:
            kind = find_kind(publication.media_type)
            if kind is not None and kind.name == kind_name:
                with suppress(PublicationError):
                    yield kind.decode(publication.body, publication.media_type)


class SubscriptionService:
    """The subscriptions of a store; `schema` returns the event schema, if any, `taxonomy` all loaded taxonomies."""

    def __init__(
        self,
        store: Store,
        schema: Callable[[], EventSchema | None],
        taxonomy: Callable[[], Taxonomy],
        limited: SubscriptionLimits | None = None,
    ) -> None:
        self.store, self.schema, self.taxonomy = store, schema, taxonomy
        self.limited = limited or SubscriptionLimits()

    def check(self, language: str, text: str) -> SubscriptionCheck:
        """Check a text, or raise the reason why it would be rejected; nothing is stored."""
        if language == RULES:
            with pointing("/text"):
                rule = self.rules.check(text)
            return SubscriptionCheck(rule.predicates, rule.about)
        check_language(language)
        with pointing("/text"):
            context = Context(text, self.schema(), self.limited.clauses)
            plan = LANGUAGES[language].compile(context)
            warnings = self.warnings(language, context)
        tests = {test for clause in plan.clauses for test in clause}
        return SubscriptionCheck(len(tests), describe_access(plan), warnings)

    def warnings(
        self, language: str, context: Context, recent: RecentPublications | None = None
    ) -> tuple[TextWarning, ...]:
        """Return warnings about a text that compiles, from the text itself and from local data.

        `recent` are the last publications; without it they are read from the journal.
        """
        recent = recent or RecentPublications(self.store)
        return LANGUAGES[language].warnings(context, Knowledge(self.taxonomy, recent.of))

    def subscribe(self, subscription: Subscription, paused: bool = False) -> AcceptedSubscription:
        """Add a subscription, or raise the reason why it is rejected. Without an id, one is generated.

        With `paused` it starts paused, as when it is imported from a service where it was.
        """
        if paused:
            return self._subscribe_paused(subscription)
        if subscription.language == RULES:
            return self._subscribe_by_rule(subscription)
        checked = self.check(subscription.language, subscription.text)
        id = self.store.subscriptions.add(subscription, self.limited.per_subscriber)
        return _accept(replace(subscription, id=id), checked)

    def _subscribe_paused(self, subscription: Subscription) -> AcceptedSubscription:
        checked = self.check(subscription.language, subscription.text)
        [outcome] = self.store.paused.offer([subscription], self.limited.per_subscriber)
        return _accept(replace(subscription, id=unwrap_outcome(outcome).id), checked)

    def _subscribe_by_rule(self, subscription: Subscription) -> AcceptedSubscription:
        existing = self.store.subscription_view.find(subscription.id) if subscription.id else None
        if (
            existing is not None and existing.subscription == subscription
        ):  # sent again, because a response was lost
            return _accept(subscription, self.check(RULES, subscription.text))
        if existing is not None and existing.subscription.language != RULES:
            raise id_conflict_error(
                subscription.id, existing.subscription.subscriber, subscription.subscriber
            )
        most = self.limited.per_subscriber
        if most is not None and self.store.subscription_view.count(subscription.subscriber) >= most:
            raise limit_error(most)
        with pointing("/text"):
            rule = self.rules.add(
                subscription.subscriber, subscription.text, subscription.id, subscription.within, most
            )
        return _accept(replace(subscription, id=rule.name), SubscriptionCheck(rule.predicates, rule.about))

    def find(self, id: str, subscriber: str | None = None) -> SubscriptionStatus:
        """Find a subscription by id; with `subscriber`, only one of that subscriber."""
        status = self.store.subscription_view.find(id)
        if status is None or subscriber not in (None, status.subscription.subscriber):
            raise NotFound("there is no such subscription", received=repr(id)[:200])
        return status

    def change(
        self, id: str, text: str | None, within: int | None, subscriber: str | None = None
    ) -> AcceptedSubscription:
        """Change the delay of a subscription, and its text if one is given. A paused one stays paused."""
        status = self.find(id, subscriber)
        current = status.subscription
        changed = replace(current, text=current.text if text is None else text, within=within)
        checked = self.check(changed.language, changed.text)
        if status.paused:
            done = self.store.paused.change(changed)
        elif changed.language == RULES:
            done = self.rules.change(_rule(changed))
        else:
            done = self.store.subscriptions.change(changed)
        if not done:
            raise _concurrent_change_error(id)
        return _accept(changed, checked)

    def pause(self, id: str, subscriber: str | None = None) -> SubscriptionStatus:
        """Stop matching a subscription from the stream's next batch on; a paused one stays paused."""
        status = self.find(id, subscriber)
        if status.paused:
            return status
        owner, is_rule = status.subscription.subscriber, status.subscription.language == RULES
        done = self.rules.pause(id) if is_rule else self.store.paused.pause(id, owner)
        if not done:
            raise _concurrent_change_error(id)
        return self.find(id, subscriber)

    def resume(self, id: str, subscriber: str | None = None) -> SubscriptionStatus:
        """Match a paused subscription again from the stream's next batch on; an active one stays active.

        A text that the current schema rejects is an error, and the subscription stays paused.
        """
        status = self.find(id, subscriber)
        if not status.paused:
            return status
        self.check(status.subscription.language, status.subscription.text)
        is_rule = status.subscription.language == RULES
        done = self.rules.resume(_rule(status.subscription)) if is_rule else self.store.paused.resume(id)
        if not done:
            raise _concurrent_change_error(id)
        return self.find(id, subscriber)

    def remove(self, ids: Iterable[str], subscriber: str | None = None) -> list[str]:
        """Remove subscriptions, with `subscriber` only those of that subscriber; return the ids that existed."""
        unique = list(dict.fromkeys(ids))
        removed = self.store.subscriptions.remove(unique, subscriber)
        others = [id for id in unique if id not in removed]
        removed += [id for id in others if self._remove_paused(id, subscriber)]
        rules = self.store.metadata.rules_named([id for id in others if id not in removed])
        return removed + self.rules.remove(rules, subscriber) if rules else removed

    def _remove_paused(self, id: str, subscriber: str | None) -> bool:
        status = self.store.subscription_view.find(id)
        if status is None or not status.paused or subscriber not in (None, status.subscription.subscriber):
            return False
        return self.store.paused.remove(id)

    @cached_property
    def rules(self) -> RuleSubscriptions:
        """The subscriptions in the language of rules."""
        from tidings.metadata.provider.rule_subscriptions import RuleSubscriptions  # noqa: PLC0415 - imports the index

        return RuleSubscriptions(self.store)


def build_wanted(
    subscriber: str, text: str, language: str, id: str | None, within: str | None
) -> Subscription:
    """Build a requested subscription; `within` is its delay as text."""
    with pointing("/id"):
        chosen = names.check_chosen_id(id)
    return Subscription(chosen, subscriber, language, text, parse_delay(within))


def check_language(language: str) -> None:
    """Raise if there is no such subscription language."""
    languages = (*LANGUAGES, RULES)
    if language not in languages:
        hint = hint_to_name(language, languages)
        with pointing("/language"):
            raise InputError(
                "unknown subscription language",
                received=repr(language),
                accepted=", ".join(languages),
                hint=hint,
            )


def parse_delay(within: str | None) -> int | None:
    """Parse a delay into seconds; None means no delay."""
    with pointing("/within"):
        return None if within is None else durations.parse(within)


def _accept(subscription: Subscription, checked: SubscriptionCheck) -> AcceptedSubscription:
    return AcceptedSubscription(
        subscription.id,
        subscription.subscriber,
        subscription.language,
        subscription.text,
        checked.predicates,
        checked.reached_through,
        subscription.within,
        checked.warnings,
    )


def _rule(subscription: Subscription) -> StoredRule:
    return StoredRule(subscription.id, subscription.subscriber, subscription.text, "", subscription.within)


def _concurrent_change_error(id: str) -> IdConflict:
    """Build the error for a subscription that was changed, paused, resumed or removed at the same moment."""
    return IdConflict(
        "the subscription was changed concurrently", received=id, hint="read it again and retry"
    )


# Health of subscriptions: how often each matched, and the state of its deliveries.


@dataclass(frozen=True, slots=True)
class SubscriptionHealth:
    """Matches and deliveries of a subscription so far. Without destinations nothing is delivered."""

    matched: int = 0
    last_matched: str | None = None
    delivered: int = 0
    last_success: str | None = None
    consecutive_failures: int = 0
    last_error: str | None = None
    last_failure: str | None = None
    """Time of the last error; deliveries may have succeeded since."""


def read_health(store: Store, subscriptions: Iterable[Subscription]) -> dict[str, SubscriptionHealth]:
    """Read the health of subscriptions, by id."""
    ids_by_subscriber: dict[str, list[str]] = {}
    for subscription in subscriptions:
        ids_by_subscriber.setdefault(subscription.subscriber, []).append(subscription.id)
    health: dict[str, SubscriptionHealth] = {}
    for subscriber, ids in ids_by_subscriber.items():
        deliveries = store.destinations.health(subscriber, ids)
        matches = store.numbered_notifications.match_counts(subscriber, ids)
        health |= {id: _join_health(matches[id], deliveries.get(id, DeliveryHealth())) for id in ids}
    return health


def _join_health(matches: tuple[int, str | None], delivery: DeliveryHealth) -> SubscriptionHealth:
    return SubscriptionHealth(
        *matches,
        delivery.delivered,
        delivery.last_success,
        delivery.consecutive_failures,
        delivery.last_error,
        delivery.last_failure,
    )
