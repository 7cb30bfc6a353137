"""Why a resource changed inside the results of a rule: what is different in it, or in what it refers to strongly.

    changed     serverInformation.memory 128 was 92         at doc.rdf#info

The way there is told as a path.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain, islice

from tidings.languages.rules_shown import show_name
from tidings.metadata.changes import CLASS, Changed, Changes
from tidings.metadata.explaining import MOST
from tidings.metadata.resources import Ref, Resource, Value
from tidings.model import Reason
from tidings.values import Scalar, show

LOOKED = 300
"""So many resources are looked at for one notification; of a change that is further away it is not told where it is."""

Strong = Mapping[str, Iterable[tuple[str, str]]]
"""The strong references of resources: property, and where it leads."""


@dataclass(slots=True)
class Touched:
    """The resources that are not as they were, by URI."""

    new: dict[str, Resource] = field(default_factory=dict)
    changed: dict[str, Changed] = field(default_factory=dict)
    deleted: dict[str, Resource] = field(default_factory=dict)

    @classmethod
    def of(cls, changes: Iterable[Changes]) -> Touched:
        found = cls()
        for each in changes:
            found.new |= {one.uri: one for one in each.new}
            found.changed |= {one.after.uri: one for one in each.changed}
            found.deleted |= {one.uri: one for one in each.deleted}
        return found

    def was(self, uri: str) -> str | None:
        """The class that a resource had before, if that or something else is different now."""
        before = self.changed[uri].before if uri in self.changed else self.deleted.get(uri)
        return before.cls if before else None

    def reasons(self, uri: str, path: str) -> Iterator[Reason]:
        """What became of a resource that a path leads to."""
        if uri in self.changed:
            yield from _differences(self.changed[uri], path)
        elif uri in self.new:
            yield Reason(f"{path[:-1]} is new", None, uri)
        elif uri in self.deleted:
            yield Reason(f"{path[:-1]} was removed", None, uri)


def why_changed(uri: str, touched: Touched, strong: Strong) -> list[Reason]:
    """What changed, the nearest first."""
    found = list(islice(chain.from_iterable(_reasons(uri, touched, strong)), MOST))
    return found or [Reason("it, or something that it refers to, is different", None, uri)]


def _reasons(uri: str, touched: Touched, strong: Strong) -> Iterator[Iterator[Reason]]:
    seen, waiting = {uri}, deque([(uri, "")])
    while waiting and len(seen) <= LOOKED:
        at, path = waiting.popleft()
        yield touched.reasons(at, path)
        for name, target in strong.get(at, ()):
            if target not in seen:
                seen.add(target)
                waiting.append((target, f"{path}{show_name(name)}."))


def _differences(changed: Changed, path: str) -> Iterator[Reason]:
    before, after, uri = changed.before, changed.after, changed.after.uri
    for name in changed.properties:
        if name == CLASS:
            yield Reason(f"{path}class was {show_name(before.cls)}", after.cls, uri)
            continue
        old, new = before.values.get(name, ()), after.values.get(name, ())
        gone, came = [each for each in old if each not in new], [each for each in new if each not in old]
        called = f"{path}{show_name(name)}"
        if len(old) == len(new) == 1:
            yield Reason(f"{called} was {_shown(gone[0])}", _scalar(came[0]), uri)
            continue
        yield from (Reason(f"{called} is new", _scalar(value), uri) for value in came)
        yield from (Reason(f"{called} is no more", _scalar(value), uri) for value in gone)


def _shown(value: Value) -> str:
    return f"<{value.uri}>" if isinstance(value, Ref) else show(value)


def _scalar(value: Value) -> Scalar:
    return value.uri if isinstance(value, Ref) else value
