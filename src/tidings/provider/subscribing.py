"""Rules as subscriptions, for whoever takes and withdraws those of all languages alike."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from tidings.languages.rules import parse
from tidings.languages.rules_tree import Comparison, Condition
from tidings.provider.provider import Provider
from tidings.store import Store, names


@dataclass(frozen=True, slots=True)
class Taken:
    """A rule that was taken: its name, how many predicates it has, and the class it is about."""

    name: str
    predicates: int
    about: str


class RuleSubscriptions:
    """The rules of a store."""

    def __init__(self, store: Store) -> None:
        self._provider = Provider(store)

    def add(self, subscriber: str, text: str, name: str, within: int | None) -> Taken:
        """Take a rule under a name, or under one that is made if none is given. What it finds is entered at once."""
        tree = parse(text)
        name = name or names.fresh("r")
        self._provider.add_rules({name: text}, subscriber, within=within)
        about = next(each.extension for each in tree.searched if each.variable == tree.register)
        return Taken(name, _predicates(tree.where), about)

    def remove(self, wanted: Iterable[str], subscriber: str | None) -> list[str]:
        """Forget rules, only the subscriber's own if one is given; the names that were found."""
        asked = set(wanted)
        own = [rule.name for rule in self._provider.rules() if subscriber in (None, rule.owner)]
        return list(self._provider.remove_rules([name for name in own if name in asked]))


def _predicates(condition: Condition | None) -> int:
    if condition is None:
        return 0
    return 1 if isinstance(condition, Comparison) else sum(map(_predicates, condition.parts))
