"""Warnings about XPaths that compile but cannot match, or whose paths begin in the wrong place.

    /stock/price = "50" and /quote/price = "50"   a document has one element at the top
    //lot[@id = "1" and @id = "2"]                an attribute has one value
    //lot[@sold and not(@sold)]                   required and excluded
    //lot[//bid > 5]                              the bid may be in any lot: .//bid is one in this lot

Only conflicts that are cheap to prove are found: without a warning, it may still be that no document can match.
"""

from __future__ import annotations

import operator as compare
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any as Anything
from typing import NamedTuple

from tidings.core.source_text import Span
from tidings.documents.model import Axis, NodeKind, is_named, xpath_number
from tidings.documents.twigs import DOCUMENT, Twig, TwigNode, ValueTest
from tidings.documents.xpath import xpath_parser
from tidings.documents.xpath.xpath_tree import (
    And,
    Expression,
    Not,
    Or,
    Path,
    PathTest,
    Step,
    ValueOperator,
    show_briefly,
)
from tidings.documents.xpath_compiler import twigs_of
from tidings.errors import TextWarning
from tidings.matching.compiler.language import Context

NEVER = "no document can match"
_SHOWN = 60
"""Maximum length of a path in a hint."""


def warn_about_xpath(context: Context) -> Iterator[TextWarning]:
    """Yield warnings about an XPath that compiles."""
    tree = xpath_parser.parse(context.text)
    yield from _absolute_in_predicates(tree, context)
    conflicts = [find_conflict(twig) for twig in twigs_of(tree, context)]
    if conflicts[0] is not None and all(conflicts):
        yield context.warning(f"{NEVER}: {conflicts[0].what}", _span_of(conflicts[0], tree, context))


class Conflict(NamedTuple):
    """The reason why no document satisfies a twig, and its location in the text: a test, or the name of a node."""

    what: str
    test: ValueTest | None = None
    name: str | None = None


def find_conflict(twig: Twig) -> Conflict | None:
    """Return a reason why no document satisfies a twig, if there is a simple one."""
    return _Nodes(twig).conflict()


class _Nodes:
    """The nodes of a twig that must exist. A group of them is one node of the document."""

    def __init__(self, twig: Twig) -> None:
        self._twig = twig
        self._below: Mapping[int, list[int]] = defaultdict(list)
        for number, node in enumerate(twig):
            self._below[node.parent].append(number)

    def conflict(self) -> Conflict | None:
        """Find a conflict. All paths that begin with `/` share the single document element."""
        first = [n for n in self._required([DOCUMENT]) if self._twig[n].axis is Axis.CHILD]
        others = [[n] for n in self._required([DOCUMENT]) if n not in first]
        nodes = [self._twig[n] for n in first]
        return (
            _of_the_top(nodes)
            or self._find_excluded([DOCUMENT])
            or _first(self._of_group(group) for group in ([first] if first else []) + others)
        )

    def _required(self, group: Sequence[int]) -> list[int]:
        return [n for parent in group for n in self._below[parent] if not self._twig[n].negated]

    def _of_group(self, group: list[int]) -> Conflict | None:
        nodes = [self._twig[n] for n in group]
        tests = [test for node in nodes for test in node.tests]
        return (
            _of_tests(nodes[0], tests)
            or self._find_excluded(group)
            or _first(self._of_group(each) for each in self._groups(group))
        )

    def _groups(self, group: list[int]) -> list[list[int]]:
        """Group the children of a node. An element has each attribute once; there may be several of everything else."""
        attributes: dict[str, list[int]] = defaultdict(list)
        groups = []
        for number in self._required(group):
            node = self._twig[number]
            if node.kind is NodeKind.ATTRIBUTE and node.axis is Axis.CHILD and not node.name.endswith("*"):
                attributes[node.name].append(number)
            else:
                groups.append([number])
        return [*attributes.values(), *groups]

    def _find_excluded(self, group: list[int]) -> Conflict | None:
        """Find a node below the group that is required, and excluded unconditionally."""
        for number in (n for parent in group for n in self._below[parent] if self._twig[n].negated):
            node = self._twig[number]
            if self._below[number] or node.tests or node.firsts:
                continue
            within = self._required(group) if node.axis is Axis.CHILD else [*self._all_wanted(group)]
            for other in (self._twig[n] for n in within):
                near = node.axis is Axis.DESCENDANT or other.axis is Axis.CHILD
                if near and node.kind is other.kind and is_named(node.name, other.name):
                    return Conflict(f"'{_show_node(other)}' is required and excluded", name=node.name)
        return None

    def _all_wanted(self, group: Sequence[int]) -> Iterator[int]:
        for number in self._required(group):
            yield number
            yield from self._all_wanted([number])


def _of_the_top(nodes: Sequence[TwigNode]) -> Conflict | None:
    for node in nodes:
        if node.kind is not NodeKind.ELEMENT:
            return Conflict(
                f"'{_show_node(node)}' is inside an element, not at the top of a document", name=node.name
            )
        for other in nodes:
            if not _compatible(node.name, other.name):
                names = f"'{node.name}' and '{other.name}'"
                message = f"it has one element at the top, which cannot be both {names}"
                return Conflict(message, name=other.name)
    return None


def _compatible(first: str, second: str) -> bool:
    """Return whether one name can pass two name tests; two namespace wildcards are assumed to be compatible."""
    both = first.endswith("*") and second.endswith("*")
    return both or is_named(first, second) or is_named(second, first)


_COMPARED: Mapping[ValueOperator, Callable[[Anything, Anything], bool]] = {
    ValueOperator.EQUAL: compare.eq,
    ValueOperator.UNEQUAL: compare.ne,
    ValueOperator.LESS: compare.lt,
    ValueOperator.AT_MOST: compare.le,
    ValueOperator.GREATER: compare.gt,
    ValueOperator.AT_LEAST: compare.ge,
    ValueOperator.CONTAINS: lambda value, literal: literal in value,
    ValueOperator.STARTS_WITH: lambda value, literal: value.startswith(literal),
}
_LOWER = (ValueOperator.GREATER, ValueOperator.AT_LEAST)
_UPPER = (ValueOperator.LESS, ValueOperator.AT_MOST)


def _of_tests(node: TwigNode, tests: Sequence[ValueTest]) -> Conflict | None:
    """Find two tests that no single value satisfies."""
    for test in tests:
        if test == ValueTest(ValueOperator.EQUAL, "") and node.kind is NodeKind.TEXT:
            return Conflict("no text() is empty", test)
        for other in tests:
            if _exclude(test, other):
                both = f"{_show_test(node, test)} and {_show_test(node, other)}"
                return Conflict(f"one value cannot satisfy both {both}", other)
    return None


def _exclude(test: ValueTest, other: ValueTest) -> bool:
    if test == other._replace(negated=not other.negated):
        return True
    if test.negated or not isinstance(other.literal, float | str):
        return False
    if test.operator is ValueOperator.EQUAL and isinstance(test.literal, str):
        value = test.literal if isinstance(other.literal, str) else xpath_number(test.literal)
        return _COMPARED[other.operator](value, other.literal) == other.negated
    if isinstance(test.literal, str) or isinstance(other.literal, str):
        return False
    if test.operator is ValueOperator.EQUAL:
        return _COMPARED[other.operator](test.literal, other.literal) == other.negated
    if test.operator in _LOWER and other.operator in _UPPER and not other.negated:
        closed = (test.operator, other.operator) == (ValueOperator.AT_LEAST, ValueOperator.AT_MOST)
        return test.literal > other.literal or (test.literal == other.literal and not closed)
    return False


def _show_test(node: TwigNode, test: ValueTest) -> str:
    steps = (Step(Axis.CHILD, node.kind, node.name),) if node.kind is NodeKind.ATTRIBUTE else ()
    path_test = PathTest(Path(False, steps), test.operator, test.literal)
    return show_briefly(Not(path_test) if test.negated else path_test)


def _show_node(node: TwigNode) -> str:
    return show_briefly(PathTest(Path(True, (Step(node.axis, node.kind, node.name),)))).lstrip("/")


def _first(conflicts: Iterable[Conflict | None]) -> Conflict | None:
    return next((each for each in conflicts if each is not None), None)


def _span_of(conflict: Conflict, tree: Expression, context: Context) -> Span:
    """Return the last comparison or path that the conflict is about; the whole text if there is none."""
    spans = [found.span for found in _all_tests(tree) if _is_about(conflict, found)]
    return spans[-1] if spans else Span(0, len(context.text))


def _is_about(conflict: Conflict, path_test: PathTest) -> bool:
    if conflict.test is not None:
        return (path_test.operator, path_test.literal) == (conflict.test.operator, conflict.test.literal)
    return any(step.name == conflict.name for step in path_test.path.steps)


def _all_tests(expression: Expression) -> Iterator[PathTest]:
    """Yield every comparison and every path alone, including those in brackets."""
    for test in _outermost(expression):
        yield test
        for predicate in (each for step in test.path.steps for each in step.predicates):
            yield from _all_tests(predicate)


def _absolute_in_predicates(tree: Expression, context: Context) -> Iterator[TextWarning]:
    for test in _outermost(tree):
        yield from _absolute_below(test.path, test.path, context)


def _absolute_below(path: Path, around: Path, context: Context) -> Iterator[TextWarning]:
    """Warn of paths in brackets that begin at the document, unless the absolute path `around` them begins alike."""
    for step in path.steps:
        for test in (each for predicate in step.predicates for each in _outermost(predicate)):
            if test.path.absolute and not _begin_alike(around, test.path):
                yield _wrong_beginning(step, test.path, context)
            yield from _absolute_below(test.path, test.path if test.path.absolute else around, context)


def _outermost(expression: Expression) -> Iterator[PathTest]:
    if isinstance(expression, Not):
        yield from _outermost(expression.part)
    elif isinstance(expression, And | Or):
        for part in expression.parts:
            yield from _outermost(part)
    else:
        yield expression


def _begin_alike(outer: Path, inner: Path) -> bool:
    """Return whether two paths begin at the same element: `/feed/entry[/feed/title]` is intended."""
    first, second = outer.steps[0], inner.steps[0]
    return first.axis is second.axis is Axis.CHILD and first.name == second.name


def _wrong_beginning(step: Step, path: Path, context: Context) -> TextWarning:
    written = context.text[path.span.start : path.span.end]
    short = written if len(written) <= _SHOWN else written[: _SHOWN - 1] + "…"
    suggestion = f".{short}" if short.startswith("//") else short.removeprefix("/")
    message = f"'{short}' begins at the document, not at '{step.name}'"
    return context.warning(message, path.span, hint=f"did you mean {suggestion}?")
