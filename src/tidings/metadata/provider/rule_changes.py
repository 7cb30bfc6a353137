"""Rules added, replaced and removed, each change in one transaction."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from tidings.core import durations
from tidings.errors import IdTaken, InputError
from tidings.metadata.provider.log_reader import SchemaContext
from tidings.metadata.provider.rule_program import RuleLookup, RuleProgram
from tidings.metadata.schema.model import Schema
from tidings.metadata.sql.rule_base import NamedRule
from tidings.metadata.sql.rule_filter import FilterOutcome, RuleResult
from tidings.metadata.sql.transaction import MetadataTransaction, StoredRule
from tidings.metadata.sql.trigger_evaluation import TriggerResults
from tidings.store import names

StoredRules = Mapping[str, StoredRule]
"""Rules by their whole names."""


def build_stored_rules(
    texts: Mapping[str, str], owner: str, scope: str, within: int | None
) -> dict[str, StoredRule]:
    """Rules as they will be stored. An owner whom nobody could tell anything would stop everything that is told."""
    names.check("a subscriber's name", owner, "/subscriber")
    if within is not None:
        durations.check(within)
    rules = [StoredRule(scope + name, owner, text, scope, within) for name, text in texts.items()]
    return {rule.name: rule for rule in rules}


@dataclass(frozen=True, slots=True)
class PreparedRules:
    """Rules that were taken apart, the stored ones that they search, and the schema by which all that was done."""

    rules: Sequence[NamedRule]
    searched: StoredRules
    known: SchemaContext


def prepare_rules(given: StoredRules, known: SchemaContext, find: RuleLookup) -> PreparedRules:
    """Outside of a transaction: 100,000 rules take longer than others should wait."""
    program = RuleProgram(given.values(), known.schema, find)
    made = program.taken_apart()
    searched = {name: each.rule for name, each in program.rules.items() if name not in given}
    return PreparedRules([made[name] for name in given], searched, known)


def add_prepared_rules(
    work: MetadataTransaction,
    made: PreparedRules,
    found: TriggerResults | None = None,
    most: int | None = None,
) -> frozenset[RuleResult] | None:
    """Keep rules of one owner. None if what they depend on has changed since they were taken apart, or asked.

    `found` is what their triggering rules were found to have as results before, `most` how many subscriptions their
    owner may have. Rules of repositories are none.
    """
    if _is_outdated(work, made):
        return None
    if found is not None and not work.stands(made.known.schema, made.rules, found):
        return None
    added = work.add_rules(made.known.schema, made.rules, found)
    if own := [rule for rule in made.rules if not rule.scope]:
        work.admit_rules([rule.name for rule in own], own[0].owner, most)
    outcome = FilterOutcome(added.entered, frozenset(), frozenset(), added.ends)
    work.tell_of_rules(made.known.schema, outcome)
    return added.entered


def _is_outdated(work: MetadataTransaction, made: PreparedRules) -> bool:
    return work.schema() != made.known.file or work.rules(made.searched.keys()) != made.searched


def resume_rule(work: MetadataTransaction, made: PreparedRules) -> bool | None:
    """Keep a rule that was paused, and tell what became of its results since; false if it is not paused any more, None
    as `add` says.
    """
    [rule] = made.rules
    if not work.is_paused(rule.name):
        return False
    if _is_outdated(work, made):
        return None
    work.resume(made.known.schema, rule)
    return True


def pause_rule(work: MetadataTransaction, name: str) -> bool:
    """Forget a rule, and keep its text and what it found last; false if there is no such rule."""
    rule = work.rules([name]).get(name)
    if rule is not None:
        work.pause(rule)
        remove_unused_rules(work, [name])
    return rule is not None


def remove_unused_rules(work: MetadataTransaction, names: Collection[str]) -> tuple[str, ...]:
    """Forget rules, if no other rule searches one of them."""
    _refuse_used(work, names, frozenset())
    return work.remove_rules(names).rules


def _refuse_used(work: MetadataTransaction, gone: Collection[str], read_anew: Collection[str]) -> None:
    for user, used in sorted(work.users(gone)):
        if user not in gone and user not in read_anew:
            what = f"the rule '{used}' is searched by another rule"
            raise InputError(what, received=user, hint="remove that one, too")


def replace_rules(
    work: MetadataTransaction, given: StoredRules, owner: str, scope: str, schema: Schema
) -> FilterOutcome:
    """Make these exactly the rules of an owner in a scope. Rules that search one with another text change with it."""
    before = work.rules_of(owner, scope)
    gone = before.keys() - given.keys()
    _refuse_used(work, gone, given)
    if taken := work.rules(given.keys() - before.keys()):
        raise IdTaken("somebody else has a rule of this name", received=min(taken))
    return _exchange(work, given, before, gone, schema)


def change_rule(work: MetadataTransaction, rule: StoredRule, schema: Schema) -> bool:
    """Give a rule another text or delay; false if its owner has none of this name."""
    before = work.rules([rule.name])
    if rule.name not in before or before[rule.name].owner != rule.owner:
        return False
    _exchange(work, {rule.name: rule}, before, frozenset(), schema)
    return True


def _exchange(
    work: MetadataTransaction, given: StoredRules, before: StoredRules, gone: Collection[str], schema: Schema
) -> FilterOutcome:
    """Rules in the place of those before, and what that does to results."""

    def find(names: Collection[str]) -> dict[str, StoredRule]:
        return work.rules([name for name in names if name not in gone])

    uses = RuleProgram(given.values(), schema, find)
    different = _different(work, given, before, uses)
    affected = _with_users(work, different, uses).difference(gone)
    others = find(affected - given.keys())
    made = RuleProgram([*given.values(), *others.values()], schema, find).taken_apart()
    had = work.results(affected)
    work.remove_rules(affected.union(gone))
    added = work.add_rules(schema, [made[name] for name in sorted(affected)])
    has = added.entered
    outcome = FilterOutcome(has - had, frozenset(), frozenset(had - has), added.ends)
    work.tell_of_rules(schema, outcome)
    return outcome


def _different(
    work: MetadataTransaction, given: StoredRules, before: StoredRules, program: RuleProgram
) -> set[str]:
    """Those that are new, have another text, or whose text means other rules than before."""
    used: dict[str, set[str]] = {name: set() for name in given}
    for name, other in work.uses(given.keys()):
        used[name].add(other)
    return {
        name
        for name, rule in given.items()
        if rule != before.get(name) or used[name] != program.rules[name].uses
    }


def _with_users(work: MetadataTransaction, names: Collection[str], program: RuleProgram) -> set[str]:
    """Rules with all that search them, stored or given, however far."""
    users: dict[str, set[str]] = {}
    for name, read in program.rules.items():
        for used in read.uses:
            users.setdefault(used, set()).add(name)
    found, fresh = set[str](), set(names)
    while fresh:
        found |= fresh
        stored = {user for user, _ in work.users(fresh)}
        fresh = stored.union(*(users.get(name, ()) for name in fresh)) - found
    return found
