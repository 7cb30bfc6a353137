"""Subscriptions of all languages alike: checked, taken, changed, paused, resumed, withdrawn.

To change one keeps its id: the stream forgets the old text and takes the new one in the same version. What is paused
keeps its id and its text, and nothing is matched for it until it is resumed. When a rule is
resumed, the difference is told between what its subscriber was last told and what holds then.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from tidings.core import durations
from tidings.core.language_hints import hint_to_name
from tidings.delivery.sql.destination_store import Health as Delivered
from tidings.errors import Absent, IdTaken, PublicationError, TextWarning, pointing
from tidings.events.schema.event_schema import EventSchema
from tidings.graphs.taxonomy import Taxonomy
from tidings.kinds import LANGUAGES, find_kind
from tidings.matching.compiler.compilation import describe_access
from tidings.matching.compiler.language import DEFAULT_LIMIT, Context, Knowledge
from tidings.metadata.sql.metadata_reader import StoredRule
from tidings.model import Publication, Subscription
from tidings.service.arguments import check_own_id, unknown_name_error
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
    """What a text would be as a subscription, and what to warn its author about."""

    predicates: int
    reached_through: str
    warnings: tuple[TextWarning, ...] = ()


@dataclass(frozen=True, slots=True)
class SubscriptionLimits:
    """How many clauses a subscription may become, and how many of them a subscriber may have; None is no limit."""

    clauses: int = DEFAULT_LIMIT
    each: int | None = None


RECENT, LARGEST = 20, 64 * 1024
"""How many of the last publications warnings consult, and how many bytes one of them may have."""


class RecentPublications:
    """The last publications that everybody may see, read and decoded on first use."""

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

    def _decode(self, wanted: str) -> Iterator[Any]:
        for publication in self._publications:
            kind = find_kind(publication.media_type)
            if kind is not None and kind.name == wanted:
                with suppress(PublicationError):
                    yield kind.decode(publication.body, publication.media_type)


class SubscriptionService:
    """The subscriptions of a store; `schema` is that of events, if there is one, `taxonomy` all that are loaded."""

    def __init__(
        self,
        store: Store,
        schema: Callable[[], EventSchema | None],
        taxonomy: Callable[[], Taxonomy],
        limited: SubscriptionLimits | None = None,
    ) -> None:
        self.store, self.schema, self.taxonomy, self.limited = (
            store,
            schema,
            taxonomy,
            limited or SubscriptionLimits(),
        )

    def check(self, language: str, text: str) -> SubscriptionCheck:
        """What a text would be, or why it would be refused; nothing is kept."""
        if language == RULES:
            with pointing("/text"):
                taken = self.rules.check(text)
            return SubscriptionCheck(taken.predicates, taken.about)
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
        """Return warnings about a text that compiles, from the text itself and from what is known here.

        `recent` are the last publications; without it they are read from the journal.
        """
        recent = recent or RecentPublications(self.store)
        return LANGUAGES[language].warnings(context, Knowledge(self.taxonomy, recent.of))

    def subscribe(self, wanted: Subscription, paused: bool = False) -> AcceptedSubscription:
        """Take a subscription, or refuse it with the reason; one without an id gets one. It may be paused from the
        beginning, as one that was paused elsewhere is.
        """
        if paused:
            return self._subscribe_paused(wanted)
        if wanted.language == RULES:
            return self._subscribe_by_rule(wanted)
        checked = self.check(wanted.language, wanted.text)
        id = self.store.subscriptions.add(wanted, self.limited.each)
        return _subscribed(replace(wanted, id=id), checked)

    def _subscribe_paused(self, wanted: Subscription) -> AcceptedSubscription:
        checked = self.check(wanted.language, wanted.text)
        [outcome] = self.store.paused.offer([wanted], self.limited.each)
        return _subscribed(replace(wanted, id=unwrap_outcome(outcome).id), checked)

    def _subscribe_by_rule(self, wanted: Subscription) -> AcceptedSubscription:
        known = self.store.subscription_view.find(wanted.id) if wanted.id else None
        if known is not None and known.subscription == wanted:  # sent again, because an answer was lost
            return _subscribed(wanted, self.check(RULES, wanted.text))
        if known is not None and known.subscription.language != RULES:
            raise id_conflict_error(wanted.id, known.subscription.subscriber, wanted.subscriber)
        most = self.limited.each
        if most is not None and self.store.subscription_view.count(wanted.subscriber) >= most:
            raise limit_error(most)
        with pointing("/text"):
            taken = self.rules.add(wanted.subscriber, wanted.text, wanted.id, wanted.within, most)
        return _subscribed(replace(wanted, id=taken.name), SubscriptionCheck(taken.predicates, taken.about))

    def find(self, id: str, subscriber: str | None = None) -> SubscriptionStatus:
        """The one with this id, if it is the subscriber's, if one is given."""
        found = self.store.subscription_view.find(id)
        if found is None or subscriber not in (None, found.subscription.subscriber):
            raise Absent("there is no such subscription", received=repr(id)[:200])
        return found

    def change(
        self, id: str, text: str | None, within: int | None, subscriber: str | None = None
    ) -> AcceptedSubscription:
        """Give one another text, if one is given, and this delay. One that is paused stays so."""
        kept = self.find(id, subscriber)
        before = kept.subscription
        changed = replace(before, text=before.text if text is None else text, within=within)
        checked = self.check(changed.language, changed.text)
        if kept.paused:
            done = self.store.paused.change(changed)
        elif changed.language == RULES:
            done = self.rules.change(_rule(changed))
        else:
            done = self.store.subscriptions.change(changed)
        if not done:
            raise _moved(id)
        return _subscribed(changed, checked)

    def pause(self, id: str, subscriber: str | None = None) -> SubscriptionStatus:
        """Nothing is matched for it from the stream's next batch on; one that is paused stays so."""
        kept = self.find(id, subscriber)
        if kept.paused:
            return kept
        owner, is_rule = kept.subscription.subscriber, kept.subscription.language == RULES
        done = self.rules.pause(id) if is_rule else self.store.paused.pause(id, owner)
        if not done:
            raise _moved(id)
        return self.find(id, subscriber)

    def resume(self, id: str, subscriber: str | None = None) -> SubscriptionStatus:
        """It counts again from the stream's next batch on; one that is not paused stays as it is.

        What the schema of now does not understand any more is refused, and stays paused.
        """
        kept = self.find(id, subscriber)
        if not kept.paused:
            return kept
        self.check(kept.subscription.language, kept.subscription.text)
        is_rule = kept.subscription.language == RULES
        done = self.rules.resume(_rule(kept.subscription)) if is_rule else self.store.paused.resume(id)
        if not done:
            raise _moved(id)
        return self.find(id, subscriber)

    def remove(self, ids: Iterable[str], subscriber: str | None = None) -> list[str]:
        """Withdraw subscriptions, only the subscriber's own if one is given; the ids that were found."""
        asked = list(dict.fromkeys(ids))
        found = self.store.subscriptions.remove(asked, subscriber)
        others = [id for id in asked if id not in found]
        found += [id for id in others if self._remove_paused(id, subscriber)]
        rules = self.store.metadata.rules_named([id for id in others if id not in found])
        return found + self.rules.remove(rules, subscriber) if rules else found

    def _remove_paused(self, id: str, subscriber: str | None) -> bool:
        kept = self.store.subscription_view.find(id)
        own = kept is not None and kept.paused and subscriber in (None, kept.subscription.subscriber)
        return bool(own) and self.store.paused.remove(id)

    @cached_property
    def rules(self) -> RuleSubscriptions:
        """Those in the language of rules."""
        from tidings.metadata.provider.rule_subscriptions import RuleSubscriptions  # noqa: PLC0415 - with it comes the index

        return RuleSubscriptions(self.store)


def build_wanted(
    subscriber: str, text: str, language: str, id: str | None, within: str | None
) -> Subscription:
    """A subscription as somebody asks for it, its delay in words."""
    with pointing("/id"):
        named = check_own_id(id)
    return Subscription(named, subscriber, language, text, parse_delay(within))


def check_language(language: str) -> None:
    """Refuse what is no language of subscriptions."""
    known = (*LANGUAGES, RULES)
    if language not in known:
        with pointing("/language"):
            raise unknown_name_error(
                "a subscription language", language, known, hint_to_name(language, known)
            )


def parse_delay(within: str | None) -> int | None:
    """The seconds of a delay in words; none is at once."""
    with pointing("/within"):
        return None if within is None else durations.parse(within)


def _subscribed(one: Subscription, checked: SubscriptionCheck) -> AcceptedSubscription:
    return AcceptedSubscription(
        one.id,
        one.subscriber,
        one.language,
        one.text,
        checked.predicates,
        checked.reached_through,
        one.within,
        checked.warnings,
    )


def _rule(one: Subscription) -> StoredRule:
    return StoredRule(one.id, one.subscriber, one.text, "", one.within)


def _moved(id: str) -> IdTaken:
    """Somebody else has changed, paused, resumed or removed it at the same moment."""
    return IdTaken("somebody else has changed this subscription just now", received=id, hint="look again")


# How subscriptions do: how often each matched, and what became of its deliveries.


@dataclass(frozen=True, slots=True)
class SubscriptionHealth:
    """What a subscription came to so far. Failures are those in a row; without destinations nothing is delivered."""

    matched: int = 0
    last_matched: str | None = None
    delivered: int = 0
    last_success: str | None = None
    consecutive_failures: int = 0
    last_error: str | None = None
    last_failure: str | None = None
    """When that was; it may be long past."""


def read_health(store: Store, asked: Iterable[Subscription]) -> dict[str, SubscriptionHealth]:
    """The health of subscriptions, by id."""
    mine: dict[str, list[str]] = {}
    for one in asked:
        mine.setdefault(one.subscriber, []).append(one.id)
    return {id: one for subscriber, ids in mine.items() for id, one in _of(store, subscriber, ids).items()}


def _of(store: Store, subscriber: str, ids: list[str]) -> dict[str, SubscriptionHealth]:
    delivered = store.destinations.health(subscriber, ids)
    matched = store.numbered_notifications.match_counts(subscriber, ids)
    return {id: _health(matched[id], delivered.get(id, Delivered())) for id in ids}


def _health(matched: tuple[int, str | None], told: Delivered) -> SubscriptionHealth:
    failed = told.consecutive_failures
    return SubscriptionHealth(
        *matched, told.delivered, told.last_success, failed, told.last_error, told.last_failure
    )
