"""Addition, replacement and removal of rules, each in one transaction."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from tidings.core import durations
from tidings.errors import IdTaken, InputError
from tidings.metadata.provider.log_reader import SchemaContext
from tidings.metadata.provider.rule_program import RuleLookup, RuleProgram
from tidings.metadata.schema.model import Schema
from tidings.metadata.sql.metadata_reader import StoredRule
from tidings.metadata.sql.rule_base import NamedRule
from tidings.metadata.sql.rule_filter import FilterOutcome, RuleResult
from tidings.metadata.sql.transaction import MetadataTransaction
from tidings.metadata.sql.trigger_evaluation import TriggerResults
from tidings.store import names

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
    """Add rules of one owner, or return None if they must be prepared again because what they depend on has changed.

    `results` are those of their triggering rules if they were computed before. `limit` is the maximal number of
    subscriptions of the owner; rules of repositories are not counted.
    """
    schema = prepared.context.schema
    if _is_outdated(transaction, prepared):
        return None
    if results is not None and not transaction.are_results_current(schema, prepared.rules, results):
        return None
    added = transaction.add_rules(schema, prepared.rules, results)
    if own := [rule for rule in prepared.rules if not rule.scope]:
        transaction.admit_rules([rule.name for rule in own], own[0].owner, limit)
    outcome = FilterOutcome(added.entered, frozenset(), frozenset(), added.ends)
    transaction.notify_rule_change(schema, outcome)
    return added.entered


def _is_outdated(transaction: MetadataTransaction, prepared: PreparedRules) -> bool:
    if transaction.schema() != prepared.context.file:
        return True
    return transaction.rules_named(prepared.searched.keys()) != prepared.searched


def resume_rule(transaction: MetadataTransaction, prepared: PreparedRules) -> bool | None:
    """Resume a paused rule and notify its owner of changes since; False if it is not paused.

    Return None if it must be prepared again, as `add_prepared_rules` does.
    """
    [rule] = prepared.rules
    if not transaction.is_paused(rule.name):
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
    return transaction.remove_rules(names).rules


def _check_unused(
    transaction: MetadataTransaction, removed: Collection[str], replaced: Collection[str]
) -> None:
    for user, used in sorted(transaction.uses_of(removed)):
        if user not in removed and user not in replaced:
            what = f"the rule '{used}' is searched by another rule"
            raise InputError(what, received=user, hint="remove that one, too")


def replace_rules(
    transaction: MetadataTransaction, rules: StoredRules, owner: str, scope: str, schema: Schema
) -> FilterOutcome:
    """Replace all rules of an owner in a scope. Rules that search a changed rule are updated, too."""
    before = transaction.rules_of(owner, scope)
    removed = before.keys() - rules.keys()
    _check_unused(transaction, removed, rules)
    if taken := transaction.rules_named(rules.keys() - before.keys()):
        raise IdTaken("another owner has a rule of this name", received=min(taken))
    return _exchange_rules(transaction, rules, before, removed, schema)


def change_rule(transaction: MetadataTransaction, rule: StoredRule, schema: Schema) -> bool:
    """Change the text or the delay of a rule; False if its owner has no rule of this name."""
    before = transaction.rules_named([rule.name])
    if rule.name not in before or before[rule.name].owner != rule.owner:
        return False
    _exchange_rules(transaction, {rule.name: rule}, before, frozenset(), schema)
    return True


def _exchange_rules(
    transaction: MetadataTransaction,
    rules: StoredRules,
    before: StoredRules,
    removed: Collection[str],
    schema: Schema,
) -> FilterOutcome:
    """Replace rules and those that search them, and return the changes of their results."""

    def find(names: Collection[str]) -> dict[str, StoredRule]:
        return transaction.rules_named([name for name in names if name not in removed])

    program = RuleProgram(rules.values(), schema, find)
    changed = _find_changed(transaction, rules, before, program)
    affected = _with_users(transaction, changed, program).difference(removed)
    others = find(affected - rules.keys())
    decomposed = RuleProgram([*rules.values(), *others.values()], schema, find).decompose()
    old_results = transaction.result_pairs(affected)
    transaction.remove_rules(affected.union(removed))
    added = transaction.add_rules(schema, [decomposed[name] for name in sorted(affected)])
    outcome = FilterOutcome(
        added.entered - old_results, frozenset(), frozenset(old_results - added.entered), added.ends
    )
    transaction.notify_rule_change(schema, outcome)
    return outcome


def _find_changed(
    transaction: MetadataTransaction, rules: StoredRules, before: StoredRules, program: RuleProgram
) -> set[str]:
    """Return the rules that are new, have another text, or whose text refers to other rules than before."""
    uses: dict[str, set[str]] = {name: set() for name in rules}
    for name, used in transaction.uses_by(rules.keys()):
        uses[name].add(used)
    return {
        name
        for name, rule in rules.items()
        if rule != before.get(name) or uses[name] != program.rules[name].uses
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
