"""Addition, replacement and removal of rules, each in one transaction.

Names are stored with their scope as a prefix: two repositories may each have a rule `large`. In a scope, `search large
l` refers to the rule of that scope, or else to the one without a scope.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from tidings.core import durations
from tidings.errors import IdConflict, InputError, SubscriptionError
from tidings.metadata.provider.log_applier import SchemaContext
from tidings.metadata.rules import validation
from tidings.metadata.rules.atomic import AtomicRule, TriggeringRule, decompose
from tidings.metadata.rules.rule_parser import parse_rule
from tidings.metadata.rules.syntax import Operator, Rule
from tidings.metadata.schema.model import Schema
from tidings.metadata.sql.metadata_reader import StoredRule
from tidings.metadata.sql.rule_base import NamedRule, delete_rules
from tidings.metadata.sql.rule_filter import FilterOutcome, RuleResult, add_rules
from tidings.metadata.sql.transaction import MetadataTransaction
from tidings.metadata.sql.trigger_evaluation import TriggerResults, is_current
from tidings.store import names
from tidings.store.subscriptions.admission import admit_rules
from tidings.store.subscriptions.suspension import find_paused

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
            found_rules = self._find_searched(pending.values(), trees)
            self.rules |= {
                name: _resolve_names(rule, trees[name], found_rules, schema) for name, rule in pending.items()
            }
            used = {searched for name in pending for searched in self.rules[name].uses}
            pending = {name: found_rules[name] for name in sorted(used - self.rules.keys())}

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
            for variable in trees[rule.name].searched
            for name in (rule.scope + variable.extension, variable.extension)
            if variable.extension not in self._schema.classes
        }
        new_rules = self._new | {name: parsed.rule for name, parsed in self.rules.items()}
        return new_rules | dict(self._find(names - new_rules.keys()))

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


def _resolve_names(rule: StoredRule, tree: Rule, rule_names: Collection[str], schema: Schema) -> ParsedRule:
    """Replace the names of searched rules by full names; unknown names stay."""
    full_names = {
        variable.extension: next(
            (name for name in (rule.scope + variable.extension, variable.extension) if name in rule_names),
            variable.extension,
        )
        for variable in tree.searched
        if variable.extension not in schema.classes
    }
    searched = tuple(
        replace(variable, extension=full_names.get(variable.extension, variable.extension))
        for variable in tree.searched
    )
    uses = frozenset(name for name in full_names.values() if name in rule_names)
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


StoredRules = Mapping[str, StoredRule]
"""Rules by their full names."""


def build_stored_rules(
    texts: Mapping[str, str], owner: str, scope: str, within: int | None
) -> dict[str, StoredRule]:
    """Build the rules to store. Names of owners are checked: an invalid one would block all notifications."""
    names.check("a subscriber's name", owner, "/subscriber")
    if within is not None:
        durations.check(within)
    rules = [StoredRule(scope + name, owner, text, scope, within) for name, text in texts.items()]
    return {rule.name: rule for rule in rules}


@dataclass(frozen=True, slots=True)
class PreparedRules:
    """Decomposed rules, the stored rules that they search, and the schema they were decomposed by."""

    rules: Sequence[NamedRule]
    searched: StoredRules
    context: SchemaContext


def prepare_rules(rules: StoredRules, context: SchemaContext, find: RuleLookup) -> PreparedRules:
    """Decompose rules outside of a transaction: 100,000 rules would block others for too long."""
    program = RuleProgram(rules.values(), context.schema, find)
    decomposed = program.decompose()
    searched = {name: parsed.rule for name, parsed in program.rules.items() if name not in rules}
    return PreparedRules([decomposed[name] for name in rules], searched, context)


def add_prepared_rules(
    transaction: MetadataTransaction,
    prepared: PreparedRules,
    results: TriggerResults | None = None,
    limit: int | None = None,
) -> frozenset[RuleResult] | None:
    """Add rules of one owner, or return None if their dependencies have changed, so that they must be prepared again.

    `results` are those of their triggering rules if they were computed before. `limit` is the maximal number of
    subscriptions of the owner; rules of repositories are not counted.
    """
    schema = prepared.context.schema
    if _is_outdated(transaction, prepared):
        return None
    if results is not None:
        new = transaction.new_triggering_rules(schema, prepared.rules)
        if not is_current(transaction.connection, results, new.keys()):
            return None
    outcome = add_rules(transaction.connection, schema, prepared.rules, results)
    if own := [rule for rule in prepared.rules if not rule.scope]:
        admit_rules(transaction.connection, [rule.name for rule in own], own[0].owner, limit)
    transaction.notify_rule_change(schema, outcome)
    return outcome.entered


def _is_outdated(transaction: MetadataTransaction, prepared: PreparedRules) -> bool:
    if transaction.schema() != prepared.context.file:
        return True
    return transaction.rules_named(prepared.searched.keys()) != prepared.searched


def resume_rule(transaction: MetadataTransaction, prepared: PreparedRules) -> bool | None:
    """Resume a paused rule and notify its owner of changes since; False if it is not paused.

    Return None if it must be prepared again, as `add_prepared_rules` does.
    """
    [rule] = prepared.rules
    if find_paused(transaction.connection, rule.name) is None:
        return False
    if _is_outdated(transaction, prepared):
        return None
    transaction.resume(prepared.context.schema, rule)
    return True


def pause_rule(transaction: MetadataTransaction, name: str) -> bool:
    """Remove a rule and save its text and results; False if there is no such rule."""
    rule = transaction.rules_named([name]).get(name)
    if rule is not None:
        transaction.pause(rule)
        remove_unused_rules(transaction, [name])
    return rule is not None


def remove_unused_rules(transaction: MetadataTransaction, names: Collection[str]) -> tuple[str, ...]:
    """Remove rules, or raise InputError if another rule searches one of them."""
    _check_unused(transaction, names, frozenset())
    return delete_rules(transaction.connection, names).rules


def _check_unused(
    transaction: MetadataTransaction, removed: Collection[str], replaced: Collection[str]
) -> None:
    for user, used in sorted(transaction.uses_of(removed)):
        if user not in removed and user not in replaced:
            message = f"the rule '{used}' is searched by another rule"
            raise InputError(message, received=user, hint="remove that one, too")


def replace_rules(
    transaction: MetadataTransaction, rules: StoredRules, owner: str, scope: str, schema: Schema
) -> FilterOutcome:
    """Replace all rules of an owner in a scope. Rules that search a changed rule are updated, too."""
    stored_rules = transaction.rules_of(owner, scope)
    removed = stored_rules.keys() - rules.keys()
    _check_unused(transaction, removed, rules)
    if conflicting := transaction.rules_named(rules.keys() - stored_rules.keys()):
        raise IdConflict("another owner has a rule of this name", received=min(conflicting))
    return _exchange_rules(transaction, rules, stored_rules, removed, schema)


def change_rule(transaction: MetadataTransaction, rule: StoredRule, schema: Schema) -> bool:
    """Change the text or the delay of a rule; False if its owner has no rule of this name."""
    stored_rules = transaction.rules_named([rule.name])
    if rule.name not in stored_rules or stored_rules[rule.name].owner != rule.owner:
        return False
    _exchange_rules(transaction, {rule.name: rule}, stored_rules, frozenset(), schema)
    return True


def _exchange_rules(
    transaction: MetadataTransaction,
    rules: StoredRules,
    stored_rules: StoredRules,
    removed: Collection[str],
    schema: Schema,
) -> FilterOutcome:
    """Replace rules and those that search them, and return the changes of their results."""

    def find(names: Collection[str]) -> dict[str, StoredRule]:
        return transaction.rules_named([name for name in names if name not in removed])

    program = RuleProgram(rules.values(), schema, find)
    changed = _find_changed(transaction, rules, stored_rules, program)
    affected = _with_users(transaction, changed, program).difference(removed)
    others = find(affected - rules.keys())
    decomposed = RuleProgram([*rules.values(), *others.values()], schema, find).decompose()
    old_results = transaction.result_pairs(affected)
    delete_rules(transaction.connection, affected.union(removed))
    added = add_rules(transaction.connection, schema, [decomposed[name] for name in sorted(affected)])
    entered, left = added.entered - old_results, frozenset(old_results - added.entered)
    outcome = FilterOutcome(entered, left=left, ends=added.ends)
    transaction.notify_rule_change(schema, outcome)
    return outcome


def _find_changed(
    transaction: MetadataTransaction, rules: StoredRules, stored_rules: StoredRules, program: RuleProgram
) -> set[str]:
    """Return the rules that are new, have another text, or whose text refers to other rules than before."""
    uses: dict[str, set[str]] = {name: set() for name in rules}
    for name, used in transaction.uses_by(rules.keys()):
        uses[name].add(used)
    return {
        name
        for name, rule in rules.items()
        if rule != stored_rules.get(name) or uses[name] != program.rules[name].uses
    }


def _with_users(transaction: MetadataTransaction, names: Collection[str], program: RuleProgram) -> set[str]:
    """Return rules with all stored or new rules that search them, transitively."""
    users: dict[str, set[str]] = {}
    for name, parsed in program.rules.items():
        for used in parsed.uses:
            users.setdefault(used, set()).add(name)
    reached, fresh = set[str](), set(names)
    while fresh:
        reached |= fresh
        stored = {user for user, _ in transaction.uses_of(fresh)}
        fresh = stored.union(*(users.get(name, ()) for name in fresh)) - reached
    return reached
