"""Generated documents and XPath subscriptions as texts, also for comparisons with other parsers and engines.

The alphabets are tiny on purpose: names repeat and nest, paths select nodes, values equal literals. They contain
difficult cases: comments, processing instructions and CDATA between texts, blanks, strings that are almost numbers,
quotes, other scripts, names in and out of namespaces.
"""

from __future__ import annotations

from random import Random
from xml.sax.saxutils import escape, quoteattr

from hypothesis import strategies as st

from tidings.documents.model import Axis, NodeKind
from tidings.documents.xpath.xpath_tree import (
    XML_NAMESPACE,
    And,
    Expression,
    Not,
    Or,
    Path,
    PathTest,
    Step,
    ValueOperator,
    show_number,
    show_string,
)

P, D = "urn:p", "urn:d"
PREFIXES = {"p": P, "d": D}
DECLARATIONS = "".join(f'declare namespace {prefix} = "{uri}"; ' for prefix, uri in PREFIXES.items())

VALUES = (
    *("v", "v", "w", "vw", "wv", "v5", "5", "5", "6", "-5", "0", "05", "5.0", " 5\n", ".5", "5.", "-.5"),
    *("6.25", "-0", "--5", "- 5", "5 6", "5,0", "1_0", "0x5", "٣", "-", "NaN", " ", "it's", '"v"', "<&>]]>"),
    *("ü", "日本", "\U0001f600"),
)
"""Strings on whose number all engines agree, also when concatenated in an element. The other ones are tested by
`test_matches_known_disagreements_of_other_engines`."""
NUMBERS = (5.0, 5.0, 6.0, -5.0, 0.0, 0.5, 6.25, 100.0)
PIECES = ("v", "w", "vw", "5", " ", "'", '"', "ü", "本")

ELEMENTS = ("a", "a", "a", "b", "b", "b", "c", "p:a")
ATTRIBUTES = ("x", "x", "y", "p:x", "xml:lang")
BETWEEN = ("<!--5-->", "<?v 5?>", "<![CDATA[5]]>", "<![CDATA[<v>]]>", "&#53;", "&#13;")

_VALUES, _ELEMENTS, _ATTRIBUTES, _BETWEEN = map(st.sampled_from, (VALUES, ELEMENTS, ATTRIBUTES, BETWEEN))
_DICE = {sides: st.integers(1, sides) for sides in (1, 2, 3, 4, 5, 10)}


def _roll(draw: st.DrawFn, sides: int) -> int:
    """Draw a number. Strategies that are created once are much faster than those created for each draw."""
    return draw(_DICE[sides])


@st.composite
def documents(draw: st.DrawFn, depth: int = 3) -> str:
    """A document as text, whose root element declares the prefix p."""
    before = "<!--5--><?v?>" if _roll(draw, 5) == 5 else ""
    return before + _element(draw, depth, f' xmlns:p="{P}"')


def _element(draw: st.DrawFn, depth: int, declared: str = "") -> str:
    name = draw(_ELEMENTS)
    attributes = {draw(_ATTRIBUTES): draw(_VALUES) for _ in range(_roll(draw, 3) - 1)}
    if _roll(draw, 10) == 10:
        declared += f' xmlns="{D if _roll(draw, 3) < 3 else ""}"'
    written = "".join(f" {key}={_attribute(value)}" for key, value in attributes.items())
    size = 1 + _roll(draw, 2) if depth > 1 else _roll(draw, 3) - 1
    content = "".join(_content(draw, depth) for _ in range(size))
    return f"<{name}{declared}{written}>{content}</{name}>"


def _content(draw: st.DrawFn, depth: int) -> str:
    rolled = _roll(draw, 10)
    if depth and rolled < 7:
        return _element(draw, depth - 1)
    return draw(_BETWEEN) if rolled == 10 else escape(draw(_VALUES))


def _attribute(value: str) -> str:
    return quoteattr(value, {"\n": "&#10;"})


_NAMES = st.sampled_from([*"aaabbbc**", f"{{{P}}}a", f"{{{P}}}*", f"{{{D}}}a"])
_ATTRIBUTE_NAMES = st.sampled_from([*"xxy*", f"{{{P}}}x", f"{{{P}}}*", f"{{{XML_NAMESPACE}}}lang"])
_KINDS = st.sampled_from([*[NodeKind.ELEMENT] * 6, NodeKind.ATTRIBUTE, NodeKind.ATTRIBUTE, NodeKind.TEXT])
_OPERATORS = st.sampled_from([*[None] * 4, *ValueOperator])
_ORDERS = (ValueOperator.LESS, ValueOperator.AT_MOST, ValueOperator.GREATER, ValueOperator.AT_LEAST)
_INSIDES = (ValueOperator.CONTAINS, ValueOperator.STARTS_WITH)
_COMPARED = st.sampled_from([None, *(each for each in ValueOperator if each not in _INSIDES)])
_PLAIN_NAMES = st.sampled_from([*"aaab*"])
_NUMBERS, _PIECES = st.sampled_from(NUMBERS), st.sampled_from(PIECES)


@st.composite
def expressions(draw: st.DrawFn, depth: int = 3) -> Expression:
    """A tree as the parser returns it: no `and` directly inside an `and`, only absolute paths outside of predicates."""
    return _expression(draw, depth, inside=False)


def _expression(draw: st.DrawFn, depth: int, inside: bool) -> Expression:
    shape = _roll(draw, 10) if depth else 1
    if shape < 7:
        return _path_test(draw, depth, inside)
    if shape == 7:
        return Not(_expression(draw, depth - 1, inside))
    parts = [_expression(draw, depth - 1, inside) for _ in range(1 + _roll(draw, 2))]
    join = And if shape < 10 else Or
    return join(tuple(each for part in parts for each in (part.parts if isinstance(part, join) else (part,))))


def _path_test(draw: st.DrawFn, depth: int, inside: bool) -> PathTest:
    path, operator = _path(draw, depth, inside), draw(_OPERATORS)
    if operator is None:
        return PathTest(path)
    if operator in _ORDERS:
        return PathTest(path, operator, draw(_NUMBERS))
    if operator in _INSIDES:
        return PathTest(path, operator, draw(_PIECES))
    return PathTest(path, operator, draw(_NUMBERS) if _roll(draw, 2) == 2 else draw(_VALUES))


def _path(draw: st.DrawFn, depth: int, inside: bool) -> Path:
    absolute = not inside or _roll(draw, 10) == 10
    size = _roll(draw, 3) - (0 if absolute else 1)
    kinds = [NodeKind.ELEMENT] * (size - 1) + ([draw(_KINDS)] if size else [])
    steps = [_step(draw, kind, depth, begins=absolute and not place) for place, kind in enumerate(kinds)]
    return Path(absolute, tuple(steps))


def _step(draw: st.DrawFn, kind: NodeKind, depth: int, begins: bool) -> Step:
    """Return a step. The first step of a path is mostly a descendant step, because root elements differ."""
    name = "" if kind is NodeKind.TEXT else draw(_NAMES if kind is NodeKind.ELEMENT else _ATTRIBUTE_NAMES)
    axis = Axis.DESCENDANT if _roll(draw, 3) < (3 if begins else 2) else Axis.CHILD
    if not depth or _roll(draw, 4) < 4:
        return Step(axis, kind, name)
    predicate = _expression(draw, depth - 1, inside=True)
    return Step(axis, kind, name, predicate.parts if isinstance(predicate, And) else (predicate,))


@st.composite
def branching(draw: st.DrawFn, depth: int = 2) -> Expression:
    """A small typical subscription: one path with predicates, which are comparisons joined by `and`."""
    return _branch(draw, depth, absolute=True)


def _branch(draw: st.DrawFn, depth: int, absolute: bool) -> PathTest:
    steps = [
        Step(_axis(draw), NodeKind.ELEMENT, draw(_PLAIN_NAMES)),
        Step(_axis(draw), NodeKind.ELEMENT, draw(_PLAIN_NAMES), _branches(draw, depth)),
    ]
    kind = draw(_KINDS)
    if kind is not NodeKind.ELEMENT:
        steps.append(Step(_axis(draw), kind, "" if kind is NodeKind.TEXT else draw(_PLAIN_NAMES)))
    path = Path(absolute, tuple(steps[_roll(draw, len(steps)) - 1 :]))
    operator = draw(_COMPARED)
    if operator is None:
        return PathTest(path)
    if operator in _ORDERS or _roll(draw, 2) == 2:
        return PathTest(path, operator, draw(_NUMBERS))
    return PathTest(path, operator, draw(_VALUES.filter(bool)))


def _branches(draw: st.DrawFn, depth: int) -> tuple[Expression, ...]:
    if not depth:
        return ()
    return tuple(_branch(draw, depth - 1, absolute=False) for _ in range(_roll(draw, 3) - 1))


def _axis(draw: st.DrawFn) -> Axis:
    return Axis.DESCENDANT if _roll(draw, 3) == 3 else Axis.CHILD


class Writer:
    """A writer of trees in equivalent forms: long axes, literals on the left, separate predicates, parentheses.

    The prefixes are those of PREFIXES; the text is XPath 1.0, without declarations.
    """

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)

    def write(self, expression: Expression) -> str:
        if isinstance(expression, PathTest):
            return self._parenthesised(self._path_test(expression))
        if isinstance(expression, Not):
            return f"not{self._space()}({self.write(expression.part)})"
        word = "and" if isinstance(expression, And) else "or"
        return f" {self._space()}{word} ".join(self._part(part) for part in expression.parts)

    def _part(self, part: Expression) -> str:
        return f"({self.write(part)})" if isinstance(part, And | Or) else self.write(part)

    def _parenthesised(self, text: str) -> str:
        return f"({self._space()}{text})" if self._sometimes() else text

    def _path_test(self, test: PathTest) -> str:
        path, operator = self._path(test.path), test.operator
        if operator is None:
            return path
        literal = self._literal(test)
        if operator in _INSIDES:
            return f"{operator.value}({path},{self._space()}{literal})"
        if self._sometimes():
            flipped = operator.value.translate(str.maketrans("<>", "><"))
            return f"{literal} {flipped}{self._space()}{path}"
        return f"{path}{self._space()} {operator.value} {literal}"

    def _literal(self, test: PathTest) -> str:
        if isinstance(test.literal, str):
            return show_string(test.literal)
        assert test.literal is not None
        written = show_number(test.literal)
        return f'"{written}"' if test.operator in _ORDERS and self._sometimes() else written

    def _path(self, path: Path) -> str:
        written = "".join(self._step(step) for step in path.steps)
        if path.absolute:
            return written
        if not written:
            return self._random.choice([".", ".", "self::node()"])
        return f".{written}" if written.startswith("//") or self._sometimes() else written[1:].lstrip()

    def _step(self, step: Step) -> str:
        slashes, axis = ("//", "") if step.axis is Axis.DESCENDANT else ("/", "")
        if step.kind is NodeKind.ATTRIBUTE:
            axis = self._random.choice(["@", "@", "attribute::"])
        elif self._sometimes() and step.axis is Axis.DESCENDANT:
            slashes, axis = self._random.choice(["/", "//"]), "descendant::"
        elif self._sometimes():
            axis = "child::" if slashes == "//" else self._random.choice(["child::", "./"])
        test = "text()" if step.kind is NodeKind.TEXT else _prefixed(step.name)
        return f"{slashes}{self._space()}{axis}{test}{self._predicates(step.predicates)}"

    def _predicates(self, predicates: tuple[Expression, ...]) -> str:
        if len(predicates) < 2 or self._sometimes():
            return "".join(f"[{self.write(predicate)}]" for predicate in predicates)
        return f"[{self.write(And(predicates))}]"

    def _sometimes(self) -> bool:
        return self._random.random() < 0.15

    def _space(self) -> str:
        return self._random.choice(["", "", "", " ", "\n\t"])


def _prefixed(name: str) -> str:
    if not name.startswith("{"):
        return name
    uri, _, local = name[1:].rpartition("}")
    prefix = next((prefix for prefix, known in PREFIXES.items() if known == uri), "xml")
    return f"{prefix}:{local}"
