"""From the tree of an XPath to its plan: alternatives without `or`, each a twig with the tests that lead to it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import product
from typing import NamedTuple

from tidings.documents.linear_paths import tests_of
from tidings.documents.model import Axis, NodeKind
from tidings.documents.twig_words import MOST_TESTS
from tidings.documents.twigs import DOCUMENT, Twig, TwigNode, ValueTest
from tidings.documents.xpath import xpath_parser
from tidings.documents.xpath.xpath_tree import And, Expression, Not, Or, Path, PathTest, Step, ValueOperator
from tidings.errors import CheckProblem, TooLarge
from tidings.matching.compiler.context import Context
from tidings.matching.compiler.plan import Plan

_ASKS_THE_FIRST = (ValueOperator.CONTAINS, ValueOperator.STARTS_WITH)


class Branch(NamedTuple):
    """A twig node with the nodes below it. One that is `rooted` begins at the document, wherever it was written."""

    axis: Axis
    kind: NodeKind
    name: str
    children: tuple[Branch, ...] = ()
    tests: tuple[ValueTest, ...] = ()
    firsts: tuple[ValueTest, ...] = ()
    leads_on: bool = False
    negated: bool = False
    rooted: bool = False
    telling: int = 0
    """How long the longest literal is that something in it must equal: the longer, the rarer."""


Part = Branch | ValueTest
"""What one alternative asks for: a branch, or something of the node itself."""

Alternatives = tuple[tuple[Part, ...], ...]


def compile_xpath(context: Context) -> Plan:
    """The plan of an XPath."""
    twigs = twigs_of(xpath_parser.parse(context.text), context)
    tests, exact = zip(*map(tests_of, twigs), strict=True)
    return Plan(tests, twigs=twigs, exact=exact)


def twigs_of(expression: Expression, context: Context) -> tuple[Twig, ...]:
    """The alternatives of an expression; a document that satisfies one of them satisfies it."""
    alternatives = _Expansion(context).expand(expression)
    if not alternatives:
        raise CheckProblem("this can never hold", hint="no document satisfies it")
    if () in alternatives:
        raise CheckProblem("this holds for every document", hint="ask for something that a document may lack")
    twigs = tuple(_twig([part for part in parts if isinstance(part, Branch)]) for parts in alternatives)
    return twigs if len(twigs) == 1 else tuple(dict.fromkeys(twigs))


@dataclass(frozen=True, slots=True)
class _Expansion:
    """Distributes `and` over `or`. What would become more alternatives than the limit is refused."""

    context: Context

    def expand(self, expression: Expression) -> Alternatives:
        if isinstance(expression, PathTest):
            return self._found(expression)
        if isinstance(expression, Not):
            return self._negated(self.expand(expression.part))
        parts = [self.expand(part) for part in expression.parts]
        if isinstance(expression, And):
            return self._all(parts)
        assert isinstance(expression, Or)
        return self._counted(tuple(dict.fromkeys(found for part in parts for found in part)))

    def _all(self, parts: Iterable[Alternatives]) -> Alternatives:
        made: Alternatives = ((),)
        for part in parts:
            self._count(len(made) * len(part))
            made = tuple((*a, *b) for a, b in product(made, part))
        return made

    def _negated(self, alternatives: Alternatives) -> Alternatives:
        """Of each alternative something must not be so."""
        return self._all(tuple((_opposite(part),) for part in parts) for parts in alternatives)

    def _found(self, found: PathTest) -> Alternatives:
        tests = () if found.operator is None else (ValueTest(found.operator, _literal(found, self.context)),)
        if not found.path.steps:
            return (tests,)
        held = [self._all(map(self.expand, step.predicates)) for step in found.path.steps]
        first = found.operator in _ASKS_THE_FIRST and not _is_single(found.path)
        if first and any(len(each) > 1 for each in held):
            raise self.context.problem(
                "alternatives inside the path of contains() or starts-with() are not supported",
                found.path.span,
                hint="only the first node counts there: write path[...][contains(., 'x')]",
            )
        made = 1
        for each in held:
            made *= len(each)
        self._count(made)
        return tuple(_chain(found.path, chosen, tests, first) for chosen in product(*held))

    def _counted(self, made: Alternatives) -> Alternatives:
        self._count(len(made))
        return made

    def _count(self, count: int) -> None:
        if count > self.context.limit:
            raise TooLarge(
                f"the subscription needs {count:,} clauses or more",
                accepted=f"at most {self.context.limit:,}",
                hint="each combination of alternatives is a clause: split it into several subscriptions",
            )


def _literal(found: PathTest, context: Context) -> str | float:
    assert found.literal is not None
    if isinstance(found.literal, float) and not abs(found.literal) < float("inf"):
        raise context.problem("the number is not finite", found.span, accepted="a number up to about 1.8e308")
    return found.literal


def _is_single(path: Path) -> bool:
    """Whether there is one node at most: an element has an attribute once."""
    step = path.steps[0]
    return (
        len(path.steps) == 1
        and not path.absolute
        and step.kind is NodeKind.ATTRIBUTE
        and step.axis is Axis.CHILD
        and not step.name.endswith("*")
    )


def _chain(
    path: Path, chosen: tuple[tuple[Part, ...], ...], tests: tuple[ValueTest, ...], first: bool
) -> tuple[Part, ...]:
    """The branch of a path, with one alternative of the predicates at each step; and what they ask of the document."""
    branch, rooted = None, list[Part]()
    for number in reversed(range(len(path.steps))):
        step, below, own = path.steps[number], list[Branch](), list[ValueTest]()
        for part in chosen[number]:
            if isinstance(part, ValueTest):
                own.append(part)
            else:
                (rooted if part.rooted else below).append(part)
        if branch is None and not first:
            own += tests
        if branch is not None:
            below.append(branch)
        branch = _branch(step, below, own)
        if first:
            branch = branch._replace(firsts=() if number else tests, leads_on=number > 0)
    assert branch is not None
    return (branch._replace(rooted=True) if path.absolute else branch, *rooted)


def _branch(step: Step, children: list[Branch], tests: list[ValueTest]) -> Branch:
    telling = 0
    for child in children:
        if child.telling > telling and not child.negated:
            telling = child.telling
    for test in tests:
        if test.operator is ValueOperator.EQUAL and not test.negated and isinstance(test.literal, str):
            telling = max(telling, len(test.literal))
    return Branch(step.axis, step.kind, step.name, tuple(children), tuple(tests), telling=telling)


def _opposite(part: Part) -> Part:
    return part._replace(negated=not part.negated)


def _twig(branches: list[Branch]) -> Twig:
    """Branches from the document as a list of nodes, parents first."""
    nodes: list[TwigNode] = []

    def put(branch: Branch, parent: int) -> None:
        place = len(nodes)
        nodes.append(
            TwigNode(
                parent,
                branch.axis,
                branch.kind,
                branch.name,
                branch.negated,
                branch.tests,
                branch.firsts,
                branch.leads_on,
            )
        )
        for child in _in_order(branch.children):
            put(child, place)

    for branch in _in_order(_joined(branches)):
        put(branch, DOCUMENT)
    if any(max(len(node.tests), len(node.firsts)) > MOST_TESTS for node in nodes):
        raise TooLarge("too many comparisons of one node", accepted=f"at most {MOST_TESTS}")
    return tuple(nodes)


def _joined(branches: list[Branch]) -> list[Branch]:
    """There is one document element: what is asked of `/stock` here and there is asked of the same one."""
    whole: list[Branch] = []
    joined: dict[tuple[NodeKind, str], Branch] = {}
    for branch in branches:
        key = branch.kind, branch.name
        if branch.negated or branch.firsts or branch.axis is not Axis.CHILD:
            whole.append(branch)
        elif key not in joined:
            joined[key] = branch
        else:
            held = joined[key]
            joined[key] = held._replace(
                children=(*held.children, *branch.children),
                tests=(*held.tests, *branch.tests),
                telling=max(held.telling, branch.telling),
            )
    return [*whole, *joined.values()]


def _in_order(branches: Iterable[Branch]) -> list[Branch]:
    """The most telling ones last: that is where checking begins."""
    return sorted(branches, key=lambda branch: -1 if branch.negated else branch.telling)
