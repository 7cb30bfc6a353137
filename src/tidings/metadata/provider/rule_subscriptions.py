"""Rules as subscriptions, for the service that manages subscriptions of all languages."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import partial

from tidings.errors import InputError, SetupError
from tidings.metadata.provider import rule_changes
from tidings.metadata.provider.log_applier import SchemaCache, SchemaContext
from tidings.metadata.provider.provider import Provider
from tidings.metadata.provider.rule_changes import RuleLookup
from tidings.metadata.rules.rule_parser import parse_rule
from tidings.metadata.rules.syntax import Comparison, Condition
from tidings.metadata.sql.metadata_reader import SchemaFile, StoredRule
from tidings.store import names
from tidings.store.store import Store


@dataclass(frozen=True, slots=True)
class AcceptedRule:
    """An accepted rule: its name, the number of its predicates, and the class it registers."""

    name: str
    predicates: int
    about: str


@dataclass(frozen=True, slots=True)
class RuleCheck:
    """The problem of a rule, if it has one, and the names that were looked up because it searches them."""

    problem: InputError | SetupError | None
    searches: frozenset[str]


class _RuleCache:
    """Stored rules, each loaded once, with a record of all lookups."""

    def __init__(self, find: RuleLookup) -> None:
        self._find, self._rules = find, dict[str, StoredRule | None]()
        self.lookups: list[str] = []

    def find(self, names: Collection[str]) -> dict[str, StoredRule]:
        self.lookups += names
        if new := [name for name in names if name not in self._rules]:
            self._rules |= dict.fromkeys(new) | dict(self._find(new))
        return {name: rule for name in names if (rule := self._rules[name]) is not None}


class RuleSubscriptions:
    """The rules of a store."""

    def __init__(self, store: Store) -> None:
        self._provider, self._metadata = Provider(store), store.metadata
        self._schemas = SchemaCache()

    def add(
        self, subscriber: str, text: str, name: str, within: int | None, most: int | None = None
    ) -> AcceptedRule:
        """Add a rule under a name, or a generated one if it is empty. Its current results are entered at once.

        With `most`, its subscriber may have no more subscriptions than that.
        """
        accepted = _describe(name or names.new_id("r"), text)
        self._provider.add_rules({accepted.name: text}, subscriber, within=within, most=most)
        return accepted

    def add_many(
        self, texts: Mapping[str, str], subscriber: str, within: int | None, most: int | None = None
    ) -> None:
        """Add rules by name, all or none."""
        self._provider.add_rules(texts, subscriber, within=within, most=most)

    def check(self, text: str) -> AcceptedRule:
        """Validate a rule without adding it."""
        accepted = _describe(names.new_id("r"), text)
        schema = self._schemas.context(self._metadata.schema())
        self._prepare(StoredRule(accepted.name, "nobody", text), schema, self._metadata.rules_named)
        return accepted

    def check_many(self, rules: Iterable[StoredRule]) -> list[RuleCheck]:
        """Validate each rule by itself without adding it. The schema and searched rules are loaded once for all."""
        file, cache = self._metadata.schema(), _RuleCache(self._metadata.rules_named)
        return [self._check(rule, file, cache) for rule in rules]

    def _check(self, rule: StoredRule, file: SchemaFile | None, cache: _RuleCache) -> RuleCheck:
        lookups_before = len(cache.lookups)
        try:
            _describe(rule.name, rule.text)
            self._prepare(rule, self._schemas.context(file), cache.find)
        except (InputError, SetupError) as problem:
            return RuleCheck(problem.with_traceback(None), frozenset(cache.lookups[lookups_before:]))
        return RuleCheck(None, frozenset(cache.lookups[lookups_before:]))

    def change(self, rule: StoredRule) -> bool:
        """Change the text or the delay of a rule, and notify of changed results. False if there is no such rule."""
        return self._metadata.transact(
            lambda transaction: rule_changes.change_rule(
                transaction, rule, self._schemas.context(transaction.schema()).schema
            )
        )

    def pause(self, name: str) -> bool:
        """Pause a rule. False if there is no such rule."""
        return self._metadata.transact(lambda transaction: rule_changes.pause_rule(transaction, name))

    def resume(self, rule: StoredRule) -> bool:
        """Resume a paused rule, and notify of changes since then. False if it is not paused."""
        while True:
            context = self._schemas.context(self._metadata.schema())
            prepared = self._prepare(rule, context, self._metadata.rules_named)
            resumed = self._metadata.transact(partial(rule_changes.resume_rule, prepared=prepared))
            if resumed is not None:
                return resumed

    def _prepare(
        self, rule: StoredRule, context: SchemaContext, find: RuleLookup
    ) -> rule_changes.PreparedRules:
        rules = rule_changes.build_stored_rules({rule.name: rule.text}, rule.owner, "", rule.within)
        return rule_changes.prepare_rules(rules, context, find)

    def remove(self, names: Iterable[str], subscriber: str | None) -> list[str]:
        """Remove rules, only the subscriber's own if one is given; return the names of those that existed."""
        requested = set(names)
        own = [rule.name for rule in self._provider.rules() if subscriber in (None, rule.owner)]
        return list(self._provider.remove_rules([name for name in own if name in requested]))


def _describe(name: str, text: str) -> AcceptedRule:
    tree = parse_rule(text)
    about = next(each.extension for each in tree.searched if each.variable == tree.register)
    return AcceptedRule(name, _count_predicates(tree.where), about)


def _count_predicates(condition: Condition | None) -> int:
    if condition is None:
        return 0
    return 1 if isinstance(condition, Comparison) else sum(map(_count_predicates, condition.parts))
