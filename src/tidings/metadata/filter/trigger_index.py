"""Index of triggering rules, which finds those that a resource satisfies.

A resource becomes an event, with each property once for its class and once for each superclass:

    doc.rdf#host, a CycleProvider       "CycleProvider/serverHost": pirates.uni-passau.de
                                        "CycleProvider/rdf#subject": doc.rdf#host

A triggering rule becomes a predicate on one of these.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cache

from tidings.atoms import Event
from tidings.errors import TidingsError
from tidings.events import operators
from tidings.matching.compiler.compilation import compile_many
from tidings.matching.compiler.plan import Compiled
from tidings.matching.index.index import Index
from tidings.metadata.resources import SUBJECT, Ref, Resource
from tidings.metadata.rules.atomic import TriggeringRule
from tidings.metadata.rules.syntax import Operator
from tidings.metadata.schema.model import Schema
from tidings.model import Subscription
from tidings.values import Kind, Literal, Scalar, parse_instant, show

INDEX_LANGUAGE = "predicates"
INDEX_OPERATORS = {
    Operator.EQUAL: operators.EQ,
    Operator.UNEQUAL: operators.NE,
    Operator.LESS: operators.LT,
    Operator.AT_MOST: operators.LE,
    Operator.GREATER: operators.GT,
    Operator.AT_LEAST: operators.GE,
    Operator.CONTAINS: operators.CONTAINS,
}


class TriggerIndex:
    """The triggering rules of a provider by number."""

    def __init__(self, schema: Schema, index: Index | None = None, last: int = 0) -> None:
        self._schema, self._index = schema, Index.create() if index is None else index
        self._paths: dict[tuple[str, str], tuple[str, ...]] = {}
        self.last = last
        """The greatest number of an added rule; numbers are assigned in order."""
        self.read_upto = 0
        """The number up to which all rules were read. It may be greater, since join rules have numbers, too."""

    @property
    def nbytes(self) -> int:
        """The size of the index in memory."""
        return self._index.nbytes

    def add(self, rules: Mapping[int, TriggeringRule]) -> None:
        if not rules:
            return
        self.last = max(self.last, *rules)
        self._index.add(self.compile_rules(rules))

    def compile_rules(self, rules: Mapping[int, TriggeringRule]) -> Compiled:
        """Compile rules for the index, identified by their numbers."""
        texts = (self._text(rule) for rule in rules.values())
        pairs = zip(rules, texts, strict=True)
        compiled = compile_many(Subscription(str(number), "", INDEX_LANGUAGE, text) for number, text in pairs)
        if compiled.rejects:
            raise TidingsError(f"a triggering rule is not a predicate: {compiled.rejects[0]}")
        return compiled

    def remove(self, numbers: Iterable[int]) -> None:
        self._index.remove(map(str, numbers))

    def find_satisfied(self, resources: Collection[Resource]) -> Iterator[tuple[str, int]]:
        """Yield the URIs of resources with the numbers of the rules that they satisfy."""
        uris = [resource.uri for resource in resources]
        return ((uris[place], number) for place, number in self.satisfied_at(resources))

    def satisfied_at(self, resources: Collection[Resource]) -> Iterator[tuple[int, int]]:
        """Yield places of resources instead of URIs: two versions of a resource have the same URI."""
        for place, number in self._index.match(map(self._event, resources)).pairs():
            yield place, int(number)

    def _event(self, resource: Resource) -> Event:
        event: dict[str, list[Scalar]] = {}
        cls = resource.cls
        for path in self._paths_of(cls, SUBJECT):
            event[path] = [resource.uri]
        for name, values in resource.values.items():
            plain = [value.uri if isinstance(value, Ref) else value for value in values]
            for path in self._paths_of(cls, name):
                event[path] = plain
        return event

    def _paths_of(self, cls: str, property: str) -> tuple[str, ...]:
        """Return the paths of a property in an event, one for each class. The schema bounds the cache."""
        paths = self._paths.get((cls, property))
        if paths is None:
            paths = tuple(_path(above, property) for above in self._schema.at_or_above(cls))
            self._paths[cls, property] = paths
        return paths

    def _text(self, rule: TriggeringRule) -> str:
        if rule.operator is None or rule.constant is None:
            return f'exists "{_path(rule.cls, SUBJECT)}"'
        path = _path(rule.cls, rule.property or SUBJECT)
        return f'"{path}" {INDEX_OPERATORS[rule.operator].spelling} {show(self._literal(rule))}'

    def _literal(self, rule: TriggeringRule) -> Literal:
        """Return the constant, which is an instant if the schema declares one."""
        assert rule.constant is not None
        declared = self._schema.property_of(rule.cls, rule.property) if rule.property else None
        if declared is not None and declared.kind is Kind.INSTANT and isinstance(rule.constant, str):
            return parse_instant(rule.constant) or rule.constant
        return rule.constant


_EXAMPLES = (
    'exists "a"',
    '"a" = 1',
    '"a" != 2',
    '"a" > 0',
    "\"b\" = 'x'",
    "\"b\" != 'y'",
    "\"b\" contains 'x'",
    '"c" > 2004-05-31',
)


@cache
def warm_up() -> None:
    """Load the matching kernels, once in a process.

    On a new machine they are compiled, for about a minute. Call this before a transaction, which blocks other writers.
    """
    index = Index.create()
    subscriptions = (Subscription(str(n), "", INDEX_LANGUAGE, text) for n, text in enumerate(_EXAMPLES))
    index.add(compile_many(subscriptions))
    event: Event = {"a": [1], "b": ["x"], "c": ["2026-11-15T00:00:00.000000Z"]}
    for few in ([event], [event, event]):
        index.match(few).pairs()


def _path(cls: str, property: str) -> str:
    return f"{cls}/{property}"
