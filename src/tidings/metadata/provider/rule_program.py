"""Resolution of names and decomposition of a set of rules with all rules that they search.

Names are stored with their scope as a prefix: two repositories may each have a rule `large`. In a scope, `search large
l` refers to the rule of that scope, or else to the one without a scope.
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
from tidings.metadata.sql.metadata_reader import StoredRule
from tidings.metadata.sql.rule_base import NamedRule

RuleLookup = Callable[[Collection[str]], Mapping[str, StoredRule]]
"""Returns stored rules by name."""


@dataclass(frozen=True, slots=True)
class ParsedRule:
    """A rule and its tree, in which searched rules have their full names."""

    rule: StoredRule
    tree: Rule
    uses: frozenset[str]


class RuleProgram:
    """Rules with all rules that they search, transitively; other stored rules are not read."""

    def __init__(self, new: Iterable[StoredRule], schema: Schema, find: RuleLookup) -> None:
        self._schema, self._find = schema, find
        self.rules: dict[str, ParsedRule] = {}
        self._new = {rule.name: rule for rule in new}
        pending: Mapping[str, StoredRule] = self._new
        while pending:
            trees = {name: self._parse(rule) for name, rule in pending.items()}
            known = self._find_searched(pending.values(), trees)
            self.rules |= {
                name: _resolve_names(rule, trees[name], known, schema) for name, rule in pending.items()
            }
            used = {searched for name in pending for searched in self.rules[name].uses}
            pending = {name: known[name] for name in sorted(used - self.rules.keys())}

    def _parse(self, rule: StoredRule) -> Rule:
        with self._naming_errors(rule):
            return parse_rule(rule.text)

    @contextmanager
    def _naming_errors(self, rule: StoredRule) -> Iterator[None]:
        """Add the name of the rule to errors if there are several new rules."""
        try:
            yield
        except SubscriptionError as problem:
            if self._new.keys() == {rule.name}:
                raise
            name = rule.name.removeprefix(rule.scope)
            raise problem.with_place(f"rule '{name}': {problem.what}", problem.place) from problem

    def _find_searched(self, rules: Iterable[StoredRule], trees: Mapping[str, Rule]) -> dict[str, StoredRule]:
        """Return all rules that names in these may refer to: new, read before, or stored."""
        names = {
            name
            for rule in rules
            for each in trees[rule.name].searched
            for name in (rule.scope + each.extension, each.extension)
            if each.extension not in self._schema.classes
        }
        known = self._new | {name: parsed.rule for name, parsed in self.rules.items()}
        return known | dict(self._find(names - known.keys()))

    def decompose(self) -> dict[str, NamedRule]:
        """Validate and decompose all rules, in dependency order."""
        types: dict[str, str] = {}
        ends: dict[str, tuple[AtomicRule, ...]] = {}
        named: dict[str, NamedRule] = {}
        for name in validation.order_by_dependency({name: each.tree for name, each in self.rules.items()}):
            rule, tree = self.rules[name].rule, self.rules[name].tree
            with self._naming_errors(rule):
                validation.check_rule_name(name.removeprefix(rule.scope), self._schema)
                types[name] = validation.check_rule(tree, self._schema, types, rule.text)
                ends[name] = decompose(tree, self._schema, ends)
            named[name] = NamedRule(
                name, rule.owner, rule.text, ends[name], rule.scope, rule.within, self.rules[name].uses
            )
        return named


def _resolve_names(rule: StoredRule, tree: Rule, known: Collection[str], schema: Schema) -> ParsedRule:
    """Replace the names of searched rules by full names; unknown names stay."""
    full_names = {
        each.extension: next(
            (name for name in (rule.scope + each.extension, each.extension) if name in known), each.extension
        )
        for each in tree.searched
        if each.extension not in schema.classes
    }
    searched = tuple(
        replace(each, extension=full_names.get(each.extension, each.extension)) for each in tree.searched
    )
    uses = frozenset(name for name in full_names.values() if name in known)
    return ParsedRule(rule, replace(tree, searched=searched) if uses else tree, uses)


SPARK_THRESHOLD = 50_000_000
"""The number of comparisons from which new rules are evaluated by Spark instead of the store.

They take a store most of a minute (SQLite does about a million per second of CPU time). In that time, Spark starts,
reads some hundred thousand resources and matches them against an index.
"""


def estimate_comparisons(rules: Iterable[TriggeringRule], resources: int) -> int:
    """Estimate the comparisons of a store. Equality and tests of a class use its database indexes."""
    scans = sum(rule.operator not in (None, Operator.EQUAL) for rule in rules)
    return scans * resources
