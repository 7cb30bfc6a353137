"""Compilation of an XPath tree to its plan: alternatives without `or`, each a twig with the tests that lead to it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import product
from typing import NamedTuple

from tidings.documents.linear_paths import tests_of
from tidings.documents.model import Axis, NodeKind
from tidings.documents.twigs import DOCUMENT, MOST_TESTS, Twig, TwigNode, ValueTest
from tidings.documents.xpath import xpath_parser
from tidings.documents.xpath.xpath_tree import And, Expression, Not, Or, Path, PathTest, Step, ValueOperator
from tidings.errors import CheckProblem, TooLarge
from tidings.matching.compiler.language import Context
from tidings.matching.compiler.plan import Plan

_FIRST_NODE_OPERATORS = (ValueOperator.CONTAINS, ValueOperator.STARTS_WITH)


class Branch(NamedTuple):
    """A twig node with the nodes below it. A `rooted` one begins at the document, wherever it was written."""

    axis: Axis
    kind: NodeKind
    name: str
    children: tuple[Branch, ...] = ()
    tests: tuple[ValueTest, ...] = ()
    firsts: tuple[ValueTest, ...] = ()
    leads_on: bool = False
    negated: bool = False
    rooted: bool = False
    selectivity: int = 0
    """Length of the longest literal that something in the branch must equal: the longer, the rarer."""


Part = Branch | ValueTest
"""A requirement of one alternative: a branch, or a test of the node itself."""

Alternatives = tuple[tuple[Part, ...], ...]


def compile_xpath(context: Context) -> Plan:
    """Compile an XPath."""
    twigs = twigs_of(xpath_parser.parse(context.text), context)
    tests, exact = zip(*map(tests_of, twigs), strict=True)
    return Plan(tests, twigs=twigs, exact=exact)


def twigs_of(expression: Expression, context: Context) -> tuple[Twig, ...]:
    """Return the alternatives of an expression; a document matches if it satisfies one of them."""
    alternatives = _Expansion(context).expand(expression)
    if not alternatives:
        raise CheckProblem("this can never match", hint="no document satisfies it")
    if () in alternatives:
        raise CheckProblem("this matches every document", hint="require something that a document may lack")
    twigs = tuple(_twig([part for part in parts if isinstance(part, Branch)]) for parts in alternatives)
    return twigs if len(twigs) == 1 else tuple(dict.fromkeys(twigs))


@dataclass(frozen=True, slots=True)
class _Expansion:
    """Distributes `and` over `or`; more alternatives than the limit are refused."""

    context: Context

    def expand(self, expression: Expression) -> Alternatives:
        if isinstance(expression, PathTest):
            return self._path_test(expression)
        if isinstance(expression, Not):
            return self._negated(self.expand(expression.part))
        parts = [self.expand(part) for part in expression.parts]
        if isinstance(expression, And):
            return self._expand_all(parts)
        assert isinstance(expression, Or)
        return self._count_branches(tuple(dict.fromkeys(option for part in parts for option in part)))

    def _expand_all(self, parts: Iterable[Alternatives]) -> Alternatives:
        made: Alternatives = ((),)
        for part in parts:
            self._count(len(made) * len(part))
            made = tuple((*a, *b) for a, b in product(made, part))
        return made

    def _negated(self, alternatives: Alternatives) -> Alternatives:
        """Negate alternatives: at least one part of each must not hold."""
        return self._expand_all(tuple((_opposite(part),) for part in parts) for parts in alternatives)

    def _path_test(self, test: PathTest) -> Alternatives:
        tests = () if test.operator is None else (ValueTest(test.operator, _literal(test, self.context)),)
        if not test.path.steps:
            return (tests,)
        held = [self._expand_all(map(self.expand, step.predicates)) for step in test.path.steps]
        first = test.operator in _FIRST_NODE_OPERATORS and not _is_single(test.path)
        if first and any(len(options) > 1 for options in held):
            raise self.context.problem(
                "alternatives inside the path of contains() or starts-with() are not supported",
                test.path.span,
                hint="only the first node counts there: write path[...][contains(., 'x')]",
            )
        made = 1
        for options in held:
            made *= len(options)
        self._count(made)
        return tuple(_chain(test.path, chosen, tests, first) for chosen in product(*held))

    def _count_branches(self, made: Alternatives) -> Alternatives:
        self._count(len(made))
        return made

    def _count(self, count: int) -> None:
        if count > self.context.limit:
            raise TooLarge(
                f"the subscription needs {count:,} clauses or more",
                accepted=f"at most {self.context.limit:,}",
                hint="each combination of alternatives is a clause: split it into several subscriptions",
            )


def _literal(test: PathTest, context: Context) -> str | float:
    assert test.literal is not None
    if isinstance(test.literal, float) and not abs(test.literal) < float("inf"):
        raise context.problem("the number is not finite", test.span, accepted="a number up to about 1.8e308")
    return test.literal


def _is_single(path: Path) -> bool:
    """Return whether the path has at most one node: an element has each attribute once."""
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
    """Build the branch of a path with one alternative of each step's predicates, and the rooted parts of those."""
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
    selectivity = 0
    for child in children:
        if child.selectivity > selectivity and not child.negated:
            selectivity = child.selectivity
    for test in tests:
        if test.operator is ValueOperator.EQUAL and not test.negated and isinstance(test.literal, str):
            selectivity = max(selectivity, len(test.literal))
    return Branch(step.axis, step.kind, step.name, tuple(children), tuple(tests), selectivity=selectivity)


def _opposite(part: Part) -> Part:
    return part._replace(negated=not part.negated)


def _twig(branches: list[Branch]) -> Twig:
    """Flatten branches from the document into a list of nodes, parents first."""
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

    for branch in _in_order(_merge_branches(branches)):
        put(branch, DOCUMENT)
    if any(max(len(node.tests), len(node.firsts)) > MOST_TESTS for node in nodes):
        raise TooLarge("too many comparisons of one node", accepted=f"at most {MOST_TESTS}")
    return tuple(nodes)


def _merge_branches(branches: list[Branch]) -> list[Branch]:
    """Merge branches of the single document element: all conditions on `/stock` apply to the same one."""
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
                selectivity=max(held.selectivity, branch.selectivity),
            )
    return [*whole, *joined.values()]


def _in_order(branches: Iterable[Branch]) -> list[Branch]:
    """Sort the most selective branches last, where checking begins."""
    return sorted(branches, key=lambda branch: -1 if branch.negated else branch.selectivity)
