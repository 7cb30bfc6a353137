"""Rules as subscriptions, for whoever takes and withdraws those of all languages alike."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import partial

from tidings.errors import InputError, SetupError
from tidings.metadata.provider import rule_changes
from tidings.metadata.provider.log_reader import SchemaCache
from tidings.metadata.provider.provider import Provider
from tidings.metadata.rules.rule_parser import parse_rule
from tidings.metadata.rules.tree import Comparison, Condition
from tidings.metadata.sql.transaction import SchemaFile, StoredRule
from tidings.store import names
from tidings.store.store import Store


@dataclass(frozen=True, slots=True)
class AcceptedRule:
    """A rule that was taken: its name, how many predicates it has, and the class it is about."""

    name: str
    predicates: int
    about: str


@dataclass(frozen=True, slots=True)
class RuleCheck:
    """What is wrong with a rule, if something is, and the rules that were looked for because it searches them."""

    problem: InputError | SetupError | None
    searches: frozenset[str]


class _Stored:
    """Rules of the store, each asked for once."""

    def __init__(self, named: Callable[[Collection[str]], Mapping[str, StoredRule]]) -> None:
        self._named, self._known = named, dict[str, StoredRule | None]()
        self.asked: list[str] = []

    def find(self, names: Collection[str]) -> dict[str, StoredRule]:
        self.asked += names
        if new := [name for name in names if name not in self._known]:
            self._known |= dict.fromkeys(new) | dict(self._named(new))
        return {name: rule for name in names if (rule := self._known[name]) is not None}


class RuleSubscriptions:
    """The rules of a store."""

    def __init__(self, store: Store) -> None:
        self._provider, self._metadata = Provider(store), store.metadata
        self._schemas = SchemaCache()

    def add(
        self, subscriber: str, text: str, name: str, within: int | None, most: int | None = None
    ) -> AcceptedRule:
        """Take a rule under a name, or under one that is made if none is given. What it finds is entered at once.

        With `most`, its subscriber may have no more subscriptions than that.
        """
        taken = _taken(name or names.new_id("r"), text)
        self._provider.add_rules({taken.name: text}, subscriber, within=within, most=most)
        return taken

    def add_many(
        self, texts: Mapping[str, str], subscriber: str, within: int | None, most: int | None = None
    ) -> None:
        """Take rules by their names, all or none."""
        self._provider.add_rules(texts, subscriber, within=within, most=most)

    def check(self, text: str) -> AcceptedRule:
        """What a rule would be, or why it would be refused; nothing is kept."""
        taken = _taken(names.new_id("r"), text)
        self._prepared(StoredRule(taken.name, "nobody", text))
        return taken

    def look_at(self, rules: Iterable[StoredRule]) -> list[RuleCheck]:
        """What would become of rules, of each alone; nothing is kept. The schema and the rules that they search are
        looked up once for all of them.
        """
        file, stored = self._metadata.schema(), _Stored(self._metadata.named)
        return [self._looked_at(rule, file, stored) for rule in rules]

    def _looked_at(self, rule: StoredRule, file: SchemaFile | None, stored: _Stored) -> RuleCheck:
        before = len(stored.asked)
        try:
            _taken(rule.name, rule.text)
            given = rule_changes.build_stored_rules({rule.name: rule.text}, rule.owner, "", rule.within)
            rule_changes.prepare_rules(given, self._schemas.known(file), stored.find)
        except (InputError, SetupError) as problem:
            return RuleCheck(problem.with_traceback(None), frozenset(stored.asked[before:]))
        return RuleCheck(None, frozenset(stored.asked[before:]))

    def change(self, rule: StoredRule) -> bool:
        """Give a rule another text or delay; what that changes in its results is told. False if there is none."""
        return self._metadata.transact(
            lambda work: rule_changes.change_rule(work, rule, self._schemas.known(work.schema()).schema)
        )

    def pause(self, name: str) -> bool:
        """Find nothing for a rule for now. False if there is no such rule."""
        return self._metadata.transact(lambda work: rule_changes.pause_rule(work, name))

    def resume(self, rule: StoredRule) -> bool:
        """Take a paused rule again, and tell what became of its results since. False if it is not paused."""
        while True:
            made = self._prepared(rule)
            done = self._metadata.transact(partial(rule_changes.resume_rule, made=made))
            if done is not None:
                return done

    def _prepared(self, rule: StoredRule) -> rule_changes.PreparedRules:
        known = self._schemas.known(self._metadata.schema())
        given = rule_changes.build_stored_rules({rule.name: rule.text}, rule.owner, "", rule.within)
        return rule_changes.prepare_rules(given, known, self._metadata.named)

    def remove(self, wanted: Iterable[str], subscriber: str | None) -> list[str]:
        """Forget rules, only the subscriber's own if one is given; the names that were found."""
        asked = set(wanted)
        own = [rule.name for rule in self._provider.rules() if subscriber in (None, rule.owner)]
        return list(self._provider.remove_rules([name for name in own if name in asked]))


def _taken(name: str, text: str) -> AcceptedRule:
    tree = parse_rule(text)
    about = next(each.extension for each in tree.searched if each.variable == tree.register)
    return AcceptedRule(name, _predicates(tree.where), about)


def _predicates(condition: Condition | None) -> int:
    if condition is None:
        return 0
    return 1 if isinstance(condition, Comparison) else sum(map(_predicates, condition.parts))
