"""Rules added, replaced and removed, each change in one transaction."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from tidings import durations
from tidings.errors import IdTaken, InputError
from tidings.metadata.schema import Schema
from tidings.provider.reading import Known
from tidings.provider.rules import Find, Program
from tidings.store import names
from tidings.store.evaluated import Evaluated
from tidings.store.metadata import StoredRule, Work
from tidings.store.rule_base import NamedRule
from tidings.store.rule_filter import Outcome, Pair

Rules = Mapping[str, StoredRule]
"""Rules by their whole names."""


def stored(texts: Mapping[str, str], owner: str, scope: str, within: int | None) -> dict[str, StoredRule]:
    """Rules as they will be stored. An owner whom nobody could tell anything would stop everything that is told."""
    names.check("a subscriber's name", owner, "/subscriber")
    if within is not None:
        durations.check(within)
    rules = [StoredRule(scope + name, owner, text, scope, within) for name, text in texts.items()]
    return {rule.name: rule for rule in rules}


@dataclass(frozen=True, slots=True)
class Prepared:
    """Rules that were taken apart, the stored ones that they search, and the schema by which all that was done."""

    rules: Sequence[NamedRule]
    searched: Rules
    known: Known


def prepared(given: Rules, known: Known, find: Find) -> Prepared:
    """Outside of a transaction: 100,000 rules take longer than others should wait."""
    program = Program(given.values(), known.schema, find)
    made = program.taken_apart()
    searched = {name: each.rule for name, each in program.rules.items() if name not in given}
    return Prepared([made[name] for name in given], searched, known)


def add(
    work: Work, made: Prepared, found: Evaluated | None = None, most: int | None = None
) -> frozenset[Pair] | None:
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
    outcome = Outcome(added.entered, frozenset(), frozenset(), added.ends)
    work.tell_of_rules(made.known.schema, outcome)
    return added.entered


def _is_outdated(work: Work, made: Prepared) -> bool:
    return work.schema() != made.known.file or work.rules(made.searched.keys()) != made.searched


def resume(work: Work, made: Prepared) -> bool | None:
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


def pause(work: Work, name: str) -> bool:
    """Forget a rule, and keep its text and what it found last; false if there is no such rule."""
    rule = work.rules([name]).get(name)
    if rule is not None:
        work.pause(rule)
        remove(work, [name])
    return rule is not None


def remove(work: Work, names: Collection[str]) -> tuple[str, ...]:
    """Forget rules, if no other rule searches one of them."""
    _refuse_used(work, names, frozenset())
    return work.remove_rules(names).rules


def _refuse_used(work: Work, gone: Collection[str], read_anew: Collection[str]) -> None:
    for user, used in sorted(work.users(gone)):
        if user not in gone and user not in read_anew:
            what = f"the rule '{used}' is searched by another"
            raise InputError(what, received=user, hint="remove that one, too")


def replace_all(work: Work, given: Rules, owner: str, scope: str, schema: Schema) -> Outcome:
    """Make these exactly the rules of an owner in a scope. Rules that search one with another text change with it."""
    before = work.rules_of(owner, scope)
    gone = before.keys() - given.keys()
    _refuse_used(work, gone, given)
    if taken := work.rules(given.keys() - before.keys()):
        raise IdTaken("somebody else has a rule of this name", received=min(taken))
    return _exchange(work, given, before, gone, schema)


def change(work: Work, rule: StoredRule, schema: Schema) -> bool:
    """Give a rule another text or delay; false if its owner has none of this name."""
    before = work.rules([rule.name])
    if rule.name not in before or before[rule.name].owner != rule.owner:
        return False
    _exchange(work, {rule.name: rule}, before, frozenset(), schema)
    return True


def _exchange(work: Work, given: Rules, before: Rules, gone: Collection[str], schema: Schema) -> Outcome:
    """Rules in the place of those before, and what that does to results."""

    def find(names: Collection[str]) -> dict[str, StoredRule]:
        return work.rules([name for name in names if name not in gone])

    uses = Program(given.values(), schema, find)
    different = _different(work, given, before, uses)
    affected = _with_users(work, different, uses).difference(gone)
    others = find(affected - given.keys())
    made = Program([*given.values(), *others.values()], schema, find).taken_apart()
    had = work.results(affected)
    work.remove_rules(affected.union(gone))
    added = work.add_rules(schema, [made[name] for name in sorted(affected)])
    has = added.entered
    outcome = Outcome(has - had, frozenset(), frozenset(had - has), added.ends)
    work.tell_of_rules(schema, outcome)
    return outcome


def _different(work: Work, given: Rules, before: Rules, program: Program) -> set[str]:
    """Those that are new, have another text, or whose text means other rules than before."""
    used: dict[str, set[str]] = {name: set() for name in given}
    for name, other in work.uses(given.keys()):
        used[name].add(other)
    return {
        name
        for name, rule in given.items()
        if rule != before.get(name) or used[name] != program.rules[name].uses
    }


def _with_users(work: Work, names: Collection[str], program: Program) -> set[str]:
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
