"""Rules on their way into the store: their names in a scope, what they search, what they are taken apart into.

A name is kept with its scope before it: two repositories may each have a rule `large`. In a scope, `search large l`
means the scope's own rule of that name, or else the one without a scope.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace

from tidings.errors import SubscriptionError
from tidings.metadata.rules import validation
from tidings.metadata.rules.atomic import AtomicRule, TriggeringRule
from tidings.metadata.rules.decomposition import decompose
from tidings.metadata.rules.rule_parser import parse_rule
from tidings.metadata.rules.tree import Operator, Rule
from tidings.metadata.schema.model import Schema
from tidings.metadata.sql.rule_base import NamedRule
from tidings.metadata.sql.transaction import StoredRule

RuleLookup = Callable[[Collection[str]], Mapping[str, StoredRule]]
"""Finds rules that are stored by their names."""


@dataclass(frozen=True, slots=True)
class ParsedRule:
    """A rule and its tree, which calls the rules that it searches by the names they are kept by."""

    rule: StoredRule
    tree: Rule
    uses: frozenset[str]


class RuleProgram:
    """Rules with all that they search, however far. Of the others none is read."""

    def __init__(self, given: Iterable[StoredRule], schema: Schema, find: RuleLookup) -> None:
        self._schema, self._find = schema, find
        self.rules: dict[str, ParsedRule] = {}
        self._given = {rule.name: rule for rule in given}
        waiting: Mapping[str, StoredRule] = self._given
        while waiting:
            trees = {name: self._parsed(rule) for name, rule in waiting.items()}
            known = self._among(waiting.values(), trees)
            self.rules |= {
                name: _resolved(rule, trees[name], known, schema) for name, rule in waiting.items()
            }
            used = {name for each in waiting for name in self.rules[each].uses}
            waiting = {name: known[name] for name in sorted(used - self.rules.keys())}

    def _parsed(self, rule: StoredRule) -> Rule:
        with self._told_of(rule):
            return parse_rule(rule.text)

    @contextmanager
    def _told_of(self, rule: StoredRule) -> Iterator[None]:
        """What is wrong is told with the rule's name, unless it is the only one: a column alone says not of which."""
        try:
            yield
        except SubscriptionError as problem:
            if self._given.keys() == {rule.name}:
                raise
            name = rule.name.removeprefix(rule.scope)
            raise problem.moved(f"rule '{name}': {problem.what}", problem.place) from problem

    def _among(self, rules: Iterable[StoredRule], trees: Mapping[str, Rule]) -> dict[str, StoredRule]:
        """The rules that these may mean: given now, read before, or stored."""
        asked = {
            name
            for rule in rules
            for each in trees[rule.name].searched
            for name in (rule.scope + each.extension, each.extension)
            if each.extension not in self._schema.classes
        }
        there = self._given | {name: each.rule for name, each in self.rules.items()}
        return there | dict(self._find(asked - there.keys()))

    def taken_apart(self) -> dict[str, NamedRule]:
        """All of them, ready for the store."""
        types: dict[str, str] = {}
        found: dict[str, tuple[AtomicRule, ...]] = {}
        made: dict[str, NamedRule] = {}
        for name in validation.order_by_dependency({name: each.tree for name, each in self.rules.items()}):
            rule, tree = self.rules[name].rule, self.rules[name].tree
            with self._told_of(rule):
                validation.check_rule_name(name.removeprefix(rule.scope), self._schema)
                types[name] = validation.check_rule(tree, self._schema, types, rule.text)
                found[name] = decompose(tree, self._schema, found)
            made[name] = NamedRule(
                name, rule.owner, rule.text, found[name], rule.scope, rule.within, self.rules[name].uses
            )
        return made


def _resolved(rule: StoredRule, tree: Rule, known: Collection[str], schema: Schema) -> ParsedRule:
    """A rule whose searched rules are called by their whole names; one that is not there is called as it was."""
    means = {
        each.extension: next(
            (name for name in (rule.scope + each.extension, each.extension) if name in known), each.extension
        )
        for each in tree.searched
        if each.extension not in schema.classes
    }
    searched = tuple(
        replace(each, extension=means.get(each.extension, each.extension)) for each in tree.searched
    )
    uses = frozenset(name for name in means.values() if name in known)
    return ParsedRule(rule, replace(tree, searched=searched) if uses else tree, uses)


# Where new rules are evaluated over what is stored: by the store, or by others if that would take it long.


SPARK_THRESHOLD = 50_000_000
"""So many comparisons take a store most of a minute (SQLite makes about a million in a second of CPU time). In that
time Spark is started, and has read some hundred thousand resources and asked an index about them.
"""


def estimate_comparisons(rules: Iterable[TriggeringRule], resources: int) -> int:
    """About how often a store has to compare. What is equal, and all of a class, it finds by its indexes."""
    scans = sum(rule.operator not in (None, Operator.EQUAL) for rule in rules)
    return scans * resources
