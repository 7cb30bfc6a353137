"""Parser of what GQL and SPARQL share: prefixes, SELECT, edges and comparisons."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tidings.core.limits import check_limits
from tidings.graphs.gql import gql_errors as refusals
from tidings.graphs.gql.gql_terms import Operand, TermReader
from tidings.graphs.gql.gql_tree import BLANK, Constraint, ConstraintKind, PatternEdge, Variable
from tidings.graphs.model import STRING, TYPE, Term, TermKind, iri
from tidings.graphs.values import meaning
from tidings.values import Instant


@dataclass(frozen=True, slots=True)
class Limits:
    """How large a subscription may be; `values` is the number of values in `in`."""

    edges: int = 64
    constraints: int = 64
    variables: int = 64
    values: int = 256
    length: int = 10_000

    def __post_init__(self) -> None:
        check_limits(self, MOST)


MOST = {"edges": 1_000, "constraints": 1_000, "variables": 1_000, "values": 100_000, "length": 10_000_000}

_COMPARED = {each.value: each for each in ConstraintKind if each.value[0] in "=!<>"}
_FLIPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "=", "!=": "!="}
_OF_CLASSES = {
    "=": ConstraintKind.AT_CLASS,
    "!=": ConstraintKind.NOT_AT_CLASS,
    "<=": ConstraintKind.AT_OR_BELOW,
    "<": ConstraintKind.BELOW,
    ">=": ConstraintKind.AT_OR_ABOVE,
    ">": ConstraintKind.ABOVE,
}
_OF_TERMS = {"=": ConstraintKind.IS, "!=": ConstraintKind.IS_NOT}


class Reader(TermReader):
    """Parser of a text's SELECT, edges and constraints; the latter are collected in `edges` and `constraints`."""

    def __init__(self, text: str, prefixes: Mapping[str, str], limits: Limits) -> None:
        super().__init__(text, prefixes)
        self.limits = limits
        self.edges: list[PatternEdge] = []
        self.constraints: list[Constraint] = []

    def prologue(self) -> None:
        while (word := self.words[self.at].upper()) in ("PREFIX", "BASE"):
            self.at += 1
            if word == "PREFIX":
                self.declaration()
            else:
                self.base = self.whole_iri()

    def declaration(self) -> None:
        word, at = self.words[self.at], self.at
        if not word.endswith(":") or word.count(":") > 1 or word == BLANK:
            raise refusals.expected("a prefix with its colon, such as ex:,", self.tokens, at)
        self.at += 1
        meant, prefix = self.whole_iri(), word[:-1]
        if self.declared.setdefault(prefix, meant) != meant:
            raise refusals.declared_twice(prefix, self.tokens.place(at))

    def select(self) -> tuple[Variable, ...]:
        """Parse `SELECT ?x ?y`, or `SELECT *`, which is the empty tuple."""
        self.keyword("SELECT")
        if self.words[self.at].upper() in ("DISTINCT", "REDUCED"):  # bindings are distinct in any case
            self.at += 1
        if self.words[self.at] == "*":
            self.at += 1
            return ()
        found = []
        while self.words[self.at][:1] in ("?", "$") and len(self.words[self.at]) > 1:
            found.append(self.variable())
            self.at += self.words[self.at] == ","
        if self.words[self.at] == "(":
            raise refusals.projection(self.words[self.at + 1], self.tokens.place(self.at))
        if not found:
            raise refusals.expected("variables or '*'", self.tokens, self.at)
        return tuple(found)

    def subject(self) -> Operand:
        start = self.at
        found = self.operand("a variable or an IRI")
        if isinstance(found, Term) and found.kind is TermKind.LITERAL:
            raise refusals.no_subject(self.read(start))
        return found

    def property(self) -> Operand:
        start = self.at
        if self.words[start] == "a":
            self.at += 1
            return iri(TYPE)
        found = self.operand("a property: an IRI, a variable or 'a'")
        name = found.name if isinstance(found, Variable) else ""
        if name.startswith(BLANK) or (isinstance(found, Term) and found.kind is TermKind.LITERAL):
            raise refusals.no_property(self.read(start))
        return found

    def edge(self, subject: Operand, property: Operand, object: Operand, start: int) -> None:
        self.edges.append(PatternEdge(subject, property, object, self.span(start)))
        if len(self.edges) > self.limits.edges:
            raise refusals.too_many("edges", self.limits.edges, self.read(start))

    def compared(self, left: Operand, written: str, right: Operand, start: int) -> None:
        """Add a comparison of a variable with a value, in either order."""
        if isinstance(left, Variable) and isinstance(right, Term):
            self.constrain(left, self.asked(written, right, start), (right,), start)
        elif isinstance(left, Term) and isinstance(right, Variable):
            self.constrain(right, self.asked(_FLIPPED[written], left, start), (left,), start)
        else:
            raise refusals.no_comparison(isinstance(left, Variable), self.read(start), sparql=self.sparql)

    def asked(self, written: str, operand: Term, start: int) -> ConstraintKind:
        if operand.kind is TermKind.IRI:
            table = _OF_TERMS if self.sparql else _OF_CLASSES
            if written not in table:
                raise refusals.ordered_node(self.read(start))
            return table[written]
        if written not in ("=", "!=") and meaning(operand) is None:
            raise refusals.no_order(self.read(start))
        return _COMPARED[written]

    def looks_inside(self, found: Operand, asked: ConstraintKind, looked_for: Operand, start: int) -> None:
        """Add `contains` or `starts with`."""
        name = (
            ("CONTAINS" if asked is ConstraintKind.CONTAINS else "STRSTARTS") if self.sparql else asked.value
        )
        plain = isinstance(looked_for, Term) and looked_for.datatype == STRING
        if not isinstance(found, Variable) or not isinstance(looked_for, Term) or not plain:
            raise refusals.argument(name, self.read(start), sparql=self.sparql)
        if not looked_for.text:
            raise refusals.empty_string(asked.value, self.read(start))
        self.constrain(found, asked, (looked_for,), start)

    def listed(self, variable: Operand, start: int) -> None:
        """Parse the list after `in`."""
        opened = self.at
        found: list[Operand] = []
        self.symbol("(")
        while not found or self.words[self.at] == ",":
            self.at += bool(found)
            first = self.at
            found.append(self.operand("a value"))
            if not isinstance(found[-1], Term):
                raise refusals.expected("a value", self.tokens, first)
            if len(found) > self.limits.values:
                raise refusals.too_many("values", self.limits.values, self.read(opened))
        self.symbol(")", opened)
        if not isinstance(variable, Variable):
            raise refusals.no_comparison(0, self.read(start), sparql=self.sparql)
        terms = tuple(dict.fromkeys(term for term in found if isinstance(term, Term)))
        self.constrain(variable, ConstraintKind.IN, terms, start)

    def constrain(
        self, variable: Variable, asked: ConstraintKind, operands: tuple[Term, ...], start: int
    ) -> None:
        if any(_lies_between(operand) for operand in operands):
            raise refusals.between_microseconds(self.read(start))
        self.constraints.append(Constraint(variable.name, asked, operands, self.span(start)))
        if len(self.constraints) > self.limits.constraints:
            raise refusals.too_many("constraints", self.limits.constraints, self.read(start))


def _lies_between(operand: Term) -> bool:
    """Return whether a term is an instant between two microseconds, which kernels cannot represent."""
    found = meaning(operand) if operand.kind is TermKind.LITERAL else None
    return found is not None and isinstance(found.value, Instant) and found.value.between
