"""Bulk subscribe: compile many subscriptions together and store them in chunks, each with its own outcome.

    a chunk ─┬─ texts, by language ───────── the valid ones are stored in one transaction
             ├─ rules, by subscriber ─────── the valid ones are stored in one transaction
             ├─ paused subscriptions ─────── checked, then stored in one transaction
             └─ existing rules, repeated ids ── one by one

The outcomes are those of subscribing one by one, except that a rule may search rules of later rows.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING

from tidings.errors import InputError, LimitExceeded, SetupError, TextWarning, TidingsError
from tidings.kinds import LANGUAGES
from tidings.matching.compiler.language import Context
from tidings.matching.compiler.plan import TwigWriter
from tidings.metadata.sql.metadata_reader import StoredRule
from tidings.model import Subscription
from tidings.service.subscriptions import RecentPublications, SubscriptionService
from tidings.store import names
from tidings.store.subscriptions.admission import AddedSubscription, limit_error
from tidings.store.subscriptions.view import RULES

if TYPE_CHECKING:
    from tidings.metadata.provider.rule_subscriptions import RuleCheck


SUBSCRIBE_CHUNK = 5_000
"""Subscriptions per transaction: other writers wait a few tenths of a second at most."""
RULE_CHUNK = 1_000
"""Rules per transaction, which also computes their first results."""

REFUSALS = (InputError, SetupError)
"""Errors of one subscription: its own, or that something its language needs is missing, such as a schema for rules."""


@dataclass(frozen=True, slots=True)
class BulkItem:
    """A requested subscription, and whether it starts paused."""

    subscription: Subscription
    is_paused: bool = False

    @property
    def id(self) -> str:
        return self.subscription.id

    @property
    def is_compiled(self) -> bool:
        """Whether its text is compiled to clauses now."""
        return not self.is_paused and self.subscription.language != RULES


BulkOutcome = AddedSubscription | TidingsError
"""An added subscription, or why it was rejected."""
ByRow = Mapping[int, Subscription]
"""Subscriptions by their row in a chunk."""


class BulkSubscriber:
    """Adds many subscriptions with the same outcomes as `service` adds one."""

    def __init__(self, service: SubscriptionService) -> None:
        self._service = service

    def subscribe(self, items: Iterable[BulkItem | TidingsError]) -> Iterator[BulkOutcome]:
        """Yield an outcome for each item, in order; it is durable then. An item that is an error is its own outcome."""
        iterator = iter(items)
        while chunk := list(islice(iterator, SUBSCRIBE_CHUNK)):
            yield from self._subscribe_chunk(chunk)

    def _subscribe_chunk(self, chunk: Sequence[BulkItem | TidingsError]) -> list[BulkOutcome]:
        items = {row: item for row, item in enumerate(chunk) if isinstance(item, BulkItem)}
        errors = {row: item for row, item in enumerate(chunk) if isinstance(item, TidingsError)}
        repeated = _find_repeated(items)
        unique = {row: item for row, item in items.items() if row not in repeated}
        active = {row: item.subscription for row, item in unique.items() if not item.is_paused}
        paused = {row: item.subscription for row, item in unique.items() if item.is_paused}
        rules, others = _split_rules(active)
        outcomes: dict[int, BulkOutcome] = (
            errors | self._add_compiled(others) | self._add_rules(rules) | self._add_paused(paused)
        )
        for row in sorted(repeated):
            outcomes[row] = self._add_one(items[row].subscription, items[row].is_paused)
        return [outcomes[row] for row in range(len(chunk))]

    def _add_one(self, subscription: Subscription, is_paused: bool = False) -> BulkOutcome:
        existing = self._service.store.subscription_view.find(subscription.id) if subscription.id else None
        try:
            return AddedSubscription(
                self._service.subscribe(subscription, is_paused).id, new=existing is None
            )
        except REFUSALS as problem:
            return problem.with_traceback(None)

    def _add_compiled(self, rows: ByRow) -> dict[int, BulkOutcome]:
        """Add subscriptions whose texts compile to clauses."""
        problems = self._find_problems(rows)
        valid = {row: subscription for row, subscription in rows.items() if row not in problems}
        store, most = self._service.store.subscriptions, self._service.limited.per_subscriber
        outcomes = store.offer(valid.values(), most) if valid else []
        return {**problems, **dict(zip(valid, outcomes, strict=True))}

    def _add_paused(self, rows: ByRow) -> dict[int, BulkOutcome]:
        """Add paused subscriptions of all languages."""
        rules, others = _split_rules(rows)
        checks = self._check_stored(
            [StoredRule(names.new_id("r", 16), "nobody", rule.text) for rule in rules.values()]
        )
        rejected = {row: check.problem for row, check in zip(rules, checks, strict=True) if check.problem}
        problems = self._find_problems(others) | rejected
        valid = {row: subscription for row, subscription in rows.items() if row not in problems}
        store, most = self._service.store.paused, self._service.limited.per_subscriber
        outcomes = store.offer([*valid.values()], most) if valid else []
        return {**problems, **dict(zip(valid, outcomes, strict=True))}

    def _find_problems(self, rows: ByRow) -> dict[int, TidingsError]:
        """Find the texts that are invalid, by row."""
        by_language = defaultdict[str, list[int]](list)
        for row, subscription in rows.items():
            # A text that no database can store may not fit into a column either: it is checked alone.
            is_storable = subscription.text.isprintable() or _is_storable(subscription.text)
            by_language[subscription.language if is_storable else ""].append(row)
        problems: dict[int, TidingsError] = {}
        for language, numbers in by_language.items():
            problems |= self._compile_rows(language, {row: rows[row] for row in numbers})
        return problems

    def _compile_rows(self, language: str, rows: ByRow) -> dict[int, TidingsError]:
        """Compile texts of one language together; return the problems by row."""
        front = LANGUAGES.get(language)
        if front is None:
            alone = {row: self._check_one(subscription) for row, subscription in rows.items()}
            return {row: problem for row, problem in alone.items() if problem is not None}
        texts, limit = [subscription.text for subscription in rows.values()], self._service.limited.clauses
        problems = front.compile_rows(texts, self._service.schema(), limit, TwigWriter()).problems
        numbers = list(rows)
        for problem in problems.values():
            problem.pointer = "/text"
        return {numbers[place]: problem for place, problem in problems.items()}

    def _check_one(self, subscription: Subscription) -> TidingsError | None:
        try:
            self._service.check(subscription.language, subscription.text)
        except REFUSALS as problem:
            return problem.with_traceback(None)
        return None

    def _add_rules(self, rows: ByRow) -> dict[int, BulkOutcome]:
        """Add subscriptions in the language of rules."""
        ids = [rule.id for rule in rows.values() if rule.id]
        existing = self._service.store.subscription_view.find_many(ids) if rows else {}
        outcomes: dict[int, BulkOutcome] = {}
        groups = defaultdict[tuple[str, int | None], dict[int, Subscription]](dict)
        for row, rule in rows.items():
            if rule.id not in existing:
                named = rule if rule.id else replace(rule, id=names.new_id("r", 16))
                groups[rule.subscriber, rule.within][row] = named
            elif existing[rule.id].subscription == rule:  # sent again, because a response was lost
                outcomes[row] = AddedSubscription(rule.id, new=False)
            else:
                outcomes[row] = self._add_one(rule)
        for group in groups.values():
            outcomes |= zip(group, self._add_rules_of_subscriber(list(group.values())), strict=True)
        return outcomes

    def _add_rules_of_subscriber(self, rules: Sequence[Subscription]) -> list[BulkOutcome]:
        """Add rules up to the subscriber's limit; a rejected one leaves room for another."""
        most, outcomes, room = self._service.limited.per_subscriber, list[BulkOutcome](), len(rules)
        if most is not None:
            room = most - self._service.store.subscription_view.count(rules[0].subscriber)
        while room > 0 and len(outcomes) < len(rules):
            chunk = rules[len(outcomes) : len(outcomes) + min(room, RULE_CHUNK)]
            added = self._add_together(chunk)
            room -= sum(isinstance(outcome, AddedSubscription) for outcome in added)
            outcomes += added
        return outcomes + [limit_error(most or 0) for _ in rules[len(outcomes) :]]

    def _add_together(self, rules: Sequence[Subscription]) -> list[BulkOutcome]:
        """Add rules of one subscriber in one transaction, in parts if one of them is rejected."""
        if len(rules) == 1:
            return [self._add_one(rules[0])]
        texts = {rule.id: rule.text for rule in rules}
        first, most = rules[0], self._service.limited.per_subscriber
        try:
            self._service.rules.add_many(texts, first.subscriber, first.within, most)
        except LimitExceeded:  # the same subscriber added others concurrently
            return self._add_halves(rules)
        except REFUSALS:
            return self._add_valid_first(rules)
        return [AddedSubscription(rule.id, new=True) for rule in rules]

    def _add_valid_first(self, rules: Sequence[Subscription]) -> list[BulkOutcome]:
        """Add the valid rules together, then the others, which may search them.

        If every text is valid, the rejected rule is found by halving.
        """
        checks = self._check_rules(rules)
        valid = [rule for rule in rules if checks[rule.id].problem is None]
        if len(valid) == len(rules):
            return self._add_halves(rules)
        added = self._add_together(valid) if valid else ()
        outcomes = dict(zip((rule.id for rule in valid), added, strict=True))
        return self._add_rejected(rules, outcomes, checks)

    def _add_rejected(
        self, rules: Sequence[Subscription], outcomes: dict[str, BulkOutcome], checks: dict[str, RuleCheck]
    ) -> list[BulkOutcome]:
        """Check rejected rules again if they search rules that were added since, and add those that are valid now."""
        rejected, added = [rule for rule in rules if rule.id not in outcomes], _added_ids(outcomes)
        checks |= self._check_rules([rule for rule in rejected if checks[rule.id].searches & added])
        added_late = set[str]()
        for rule in rejected:
            problem = None if checks[rule.id].searches & added_late else checks[rule.id].problem
            outcomes[rule.id] = self._add_one(rule) if problem is None else problem
            added_late |= _added_ids({rule.id: outcomes[rule.id]})
        return [outcomes[rule.id] for rule in rules]

    def _check_rules(self, rules: Sequence[Subscription]) -> dict[str, RuleCheck]:
        stored = [StoredRule(rule.id, rule.subscriber, rule.text, "", rule.within) for rule in rules]
        return dict(zip((rule.id for rule in rules), self._check_stored(stored), strict=True))

    def _check_stored(self, rules: Sequence[StoredRule]) -> list[RuleCheck]:
        checks = self._service.rules.check_many(rules) if rules else []
        for check in checks:
            if check.problem is not None:
                check.problem.pointer = check.problem.pointer or "/text"
        return checks

    def _add_halves(self, rules: Sequence[Subscription]) -> list[BulkOutcome]:
        middle = len(rules) // 2
        return self._add_together(rules[:middle]) + self._add_together(rules[middle:])


def _added_ids(outcomes: Mapping[str, BulkOutcome]) -> set[str]:
    return {id for id, outcome in outcomes.items() if isinstance(outcome, AddedSubscription)}


def _split_rules(rows: ByRow) -> tuple[ByRow, ByRow]:
    """Return the rules and the other subscriptions."""
    rules = {row: subscription for row, subscription in rows.items() if subscription.language == RULES}
    return rules, {row: subscription for row, subscription in rows.items() if row not in rules}


def _find_repeated(items: Mapping[int, BulkItem]) -> set[int]:
    """Find rows whose id is on an earlier row, unless all of them are compiled: their order would be lost."""
    all_compiled: dict[str, bool] = {}
    repeated = set[int]()
    for row, item in items.items():
        if item.id in all_compiled and not (item.is_compiled and all_compiled[item.id]):
            repeated.add(row)
        if item.id:
            all_compiled[item.id] = item.is_compiled and all_compiled.get(item.id, True)
    return repeated


def _is_storable(text: str) -> bool:
    try:
        names.check_text("a text", text)
    except InputError:
        return False
    return True


# Warnings about subscriptions that were added in bulk.


MAX_WARNED_TEXTS = 1_000
"""Texts that are checked for warnings: each is parsed once more, and files may have millions."""

MAX_WARNED_CHARACTERS = 100_000
"""Characters of these texts together, the last text included: parsing them takes about a fifth of a second."""


class BulkWarnings:
    """Warnings about accepted texts, one after the other; `skipped` counts the texts beyond the limits."""

    def __init__(self, service: SubscriptionService) -> None:
        self._service = service
        self._recent = RecentPublications(service.store)
        self._texts = self._characters = self.skipped = 0

    def about(self, subscription: Subscription) -> tuple[TextWarning, ...]:
        """Return warnings about a subscription, if its language has any."""
        if subscription.language not in LANGUAGES:
            return ()
        text = subscription.text
        if self._texts >= MAX_WARNED_TEXTS or self._characters + len(text) > MAX_WARNED_CHARACTERS:
            self.skipped += 1
            return ()
        self._texts += 1
        self._characters += len(text)
        context = Context(text, self._service.schema(), self._service.limited.clauses)
        return self._service.warnings(subscription.language, context, self._recent)
