"""Many subscriptions, each for itself: compiled together, durable in chunks.

    a chunk ─┬─ texts, those of a language at a time ── what is good: into the store, in one transaction
             ├─ rules, those of a subscriber at a time ─ in one transaction, those that nothing is wrong with
             ├─ what is to be paused ─────────────────── checked, and into the store, in one transaction
             └─ ids of rules or of those that stand there twice ── one by one

What comes out is what would come out one by one, but for rules, which may search those of later rows, too.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING

from tidings.errors import InputError, OverLimit, SetupError, TextWarning, TidingsError
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
"""How many are made durable at a time: whoever else writes waits some tenths of a second for them at most."""
RULE_CHUNK = 1_000
"""The same of rules, for which it is found out what they have as results."""

REFUSALS = (InputError, SetupError)
"""What is wrong with one alone: it, or that what its language needs is not there, such as a schema for rules."""


@dataclass(frozen=True, slots=True)
class BulkItem:
    """A subscription that somebody wants, and whether it is to be paused from the beginning."""

    subscription: Subscription
    is_paused: bool = False

    @property
    def id(self) -> str:
        return self.subscription.id

    @property
    def goes_apart(self) -> bool:
        """Whether it is no text that becomes clauses now."""
        return self.is_paused or self.subscription.language == RULES


BulkOutcome = AddedSubscription | TidingsError
"""A subscription that lives, or why it does not."""
ByRow = Mapping[int, Subscription]
"""Subscriptions by their row in a chunk."""


class BulkSubscriber:
    """Takes many subscriptions, as `one` takes one."""

    def __init__(self, one: SubscriptionService) -> None:
        self._one = one

    def take(self, wanted: Iterable[BulkItem | TidingsError]) -> Iterator[BulkOutcome]:
        """An outcome for each, in the order given; what has come out is durable. What is wrong with one that could not
        even be read is its outcome.
        """
        rest = iter(wanted)
        while chunk := list(islice(rest, SUBSCRIBE_CHUNK)):
            yield from self._taken(chunk)

    def _taken(self, chunk: Sequence[BulkItem | TidingsError]) -> list[BulkOutcome]:
        wishes = {row: one for row, one in enumerate(chunk) if isinstance(one, BulkItem)}
        outcomes = {row: one for row, one in enumerate(chunk) if isinstance(one, TidingsError)}
        repeated = _repeated(wishes)
        once = {row: one for row, one in wishes.items() if row not in repeated}
        asked = {row: one.subscription for row, one in once.items() if not one.is_paused}
        paused = {row: one.subscription for row, one in once.items() if one.is_paused}
        rules, others = _rules_and_others(asked)
        done: dict[int, BulkOutcome] = (
            outcomes | self._compiled(others) | self._ruled(rules) | self._paused(paused)
        )
        done |= {
            row: self._alone(wishes[row].subscription, wishes[row].is_paused) for row in sorted(repeated)
        }
        return [done[row] for row in range(len(chunk))]

    def _alone(self, one: Subscription, is_paused: bool = False) -> BulkOutcome:
        known = self._one.store.subscription_view.find(one.id) if one.id else None
        try:
            return AddedSubscription(self._one.subscribe(one, is_paused).id, new=known is None)
        except REFUSALS as problem:
            return problem.with_traceback(None)

    def _compiled(self, asked: ByRow) -> dict[int, BulkOutcome]:
        """Those whose texts become clauses."""
        problems = self._problems(asked)
        good = {row: one for row, one in asked.items() if row not in problems}
        taken = self._one.store.subscriptions.offer(good.values(), self._one.limited.each) if good else []
        return {**problems, **dict(zip(good, taken, strict=True))}

    def _paused(self, asked: ByRow) -> dict[int, BulkOutcome]:
        """Those that are to be paused, of all languages."""
        rules, others = _rules_and_others(asked)
        looked = self._looked(
            [StoredRule(names.new_id("r", 16), "nobody", one.text) for one in rules.values()]
        )
        wrong = {row: each.problem for row, each in zip(rules, looked, strict=True) if each.problem}
        problems = self._problems(others) | wrong
        good = {row: one for row, one in asked.items() if row not in problems}
        taken = self._one.store.paused.offer([*good.values()], self._one.limited.each) if good else []
        return {**problems, **dict(zip(good, taken, strict=True))}

    def _problems(self, asked: ByRow) -> dict[int, TidingsError]:
        """What is wrong with texts."""
        by_language = defaultdict[str, list[int]](list)
        for row, one in asked.items():
            # What no database keeps may be no text for columns, either: it is looked at alone.
            by_language[one.language if one.text.isprintable() or _is_kept(one.text) else ""].append(row)
        found: dict[int, TidingsError] = {}
        for language, rows in by_language.items():
            found |= self._refused(language, {row: asked[row] for row in rows})
        return found

    def _refused(self, language: str, asked: ByRow) -> dict[int, TidingsError]:
        front = LANGUAGES.get(language)
        if front is None:
            alone = {row: self._problem(one) for row, one in asked.items()}
            return {row: problem for row, problem in alone.items() if problem is not None}
        texts, limit = [one.text for one in asked.values()], self._one.limited.clauses
        problems = front.compile_rows(texts, self._one.schema(), limit, TwigWriter()).problems
        rows = list(asked)
        for problem in problems.values():
            problem.pointer = "/text"
        return {rows[n]: problem for n, problem in problems.items()}

    def _problem(self, one: Subscription) -> TidingsError | None:
        try:
            self._one.check(one.language, one.text)
        except REFUSALS as problem:
            return problem.with_traceback(None)
        return None

    def _ruled(self, asked: ByRow) -> dict[int, BulkOutcome]:
        """Those in the language of rules."""
        known = (
            self._one.store.subscription_view.among([one.id for one in asked.values() if one.id])
            if asked
            else {}
        )
        outcomes: dict[int, BulkOutcome] = {}
        groups = defaultdict[tuple[str, int | None], dict[int, Subscription]](dict)
        for row, one in asked.items():
            if one.id not in known:
                named = one if one.id else replace(one, id=names.new_id("r", 16))
                groups[one.subscriber, one.within][row] = named
            elif known[one.id].subscription == one:  # sent again, because an answer was lost
                outcomes[row] = AddedSubscription(one.id, new=False)
            else:
                outcomes[row] = self._alone(one)
        for group in groups.values():
            outcomes |= zip(group, self._of_one_subscriber(list(group.values())), strict=True)
        return outcomes

    def _of_one_subscriber(self, rules: Sequence[Subscription]) -> list[BulkOutcome]:
        """As many as may be; in the place of one that is refused there is room for another one."""
        most, done = self._one.limited.each, list[BulkOutcome]()
        room = (
            len(rules)
            if most is None
            else most - self._one.store.subscription_view.count(rules[0].subscriber)
        )
        while room > 0 and len(done) < len(rules):
            some = rules[len(done) : len(done) + min(room, RULE_CHUNK)]
            taken = self._entered(some)
            room -= sum(isinstance(each, AddedSubscription) for each in taken)
            done += taken
        return done + [limit_error(most or 0) for _ in rules[len(done) :]]

    def _entered(self, rules: Sequence[Subscription]) -> list[BulkOutcome]:
        if len(rules) == 1:
            return [self._alone(rules[0])]
        texts = {one.id: one.text for one in rules}
        try:
            self._one.rules.add_many(texts, rules[0].subscriber, rules[0].within, self._one.limited.each)
        except OverLimit:  # others of the same subscriber came meanwhile
            return self._halved(rules)
        except REFUSALS:
            return self._sifted(rules)
        return [AddedSubscription(one.id, new=True) for one in rules]

    def _sifted(self, rules: Sequence[Subscription]) -> list[BulkOutcome]:
        """Rules one of which is refused: those that nothing is wrong with are taken together, the others after them, as
        they may search them. If nothing is wrong with any text, it is found in the halves.
        """
        looked = self._looked_at(rules)
        sound = [one for one in rules if looked[one.id].problem is None]
        if len(sound) == len(rules):
            return self._halved(rules)
        done = dict(zip((one.id for one in sound), self._entered(sound) if sound else (), strict=True))
        return self._with_wrong(rules, done, looked)

    def _with_wrong(
        self, rules: Sequence[Subscription], done: dict[str, BulkOutcome], looked: dict[str, RuleCheck]
    ) -> list[BulkOutcome]:
        """Those that something was wrong with, too: another look is taken at those that search what was added since."""
        wrong, added = [one for one in rules if one.id not in done], _added(done)
        looked |= self._looked_at([one for one in wrong if looked[one.id].searches & added])
        late = set[str]()
        for one in wrong:
            problem = None if looked[one.id].searches & late else looked[one.id].problem
            done[one.id] = self._alone(one) if problem is None else problem
            late |= _added({one.id: done[one.id]})
        return [done[one.id] for one in rules]

    def _looked_at(self, rules: Sequence[Subscription]) -> dict[str, RuleCheck]:
        stored = [StoredRule(one.id, one.subscriber, one.text, "", one.within) for one in rules]
        return dict(zip((one.id for one in rules), self._looked(stored), strict=True))

    def _looked(self, rules: Sequence[StoredRule]) -> list[RuleCheck]:
        looked = self._one.rules.check_many(rules) if rules else []
        for each in looked:
            if each.problem is not None:
                each.problem.pointer = each.problem.pointer or "/text"
        return looked

    def _halved(self, rules: Sequence[Subscription]) -> list[BulkOutcome]:
        middle = len(rules) // 2
        return self._entered(rules[:middle]) + self._entered(rules[middle:])


def _added(outcomes: Mapping[str, BulkOutcome]) -> set[str]:
    return {id for id, outcome in outcomes.items() if isinstance(outcome, AddedSubscription)}


def _rules_and_others(asked: ByRow) -> tuple[ByRow, ByRow]:
    rules = {row: one for row, one in asked.items() if one.language == RULES}
    return rules, {row: one for row, one in asked.items() if row not in rules}


def _repeated(wishes: Mapping[int, BulkItem]) -> set[int]:
    """Rows whose id was on earlier rows, if one of them goes another way than the others: order would be lost."""
    apart: dict[str, bool] = {}
    found = set[int]()
    for row, one in wishes.items():
        if one.id in apart and (one.goes_apart or apart[one.id]):
            found.add(row)
        if one.id:
            apart[one.id] = one.goes_apart or apart.get(one.id, False)
    return found


def _is_kept(text: str) -> bool:
    try:
        names.check_text("a text", text)
    except InputError:
        return False
    return True


# Warnings about many subscriptions that were taken together.


MAX_WARNED_TEXTS = 1_000
"""So many texts are looked through: each is read once more, and files may have millions."""

MOST_CHARACTERS = 100_000
"""So many characters of those texts, the last text included: reading them takes about a fifth of a second."""


class BulkWarnings:
    """Warnings about texts that were accepted, one after the other; `passed_over` counts those beyond the limits."""

    def __init__(self, subscribing: SubscriptionService) -> None:
        self._subscribing = subscribing
        self._recent = RecentPublications(subscribing.store)
        self._looked_at = self._characters = self.passed_over = 0

    def about(self, one: Subscription) -> tuple[TextWarning, ...]:
        """Warnings about a subscription in a language that has some."""
        if one.language not in LANGUAGES:
            return ()
        if self._looked_at >= MAX_WARNED_TEXTS or self._characters + len(one.text) > MOST_CHARACTERS:
            self.passed_over += 1
            return ()
        self._looked_at += 1
        self._characters += len(one.text)
        context = Context(one.text, self._subscribing.schema(), self._subscribing.limited.clauses)
        return self._subscribing.warnings(one.language, context, self._recent)
