"""Reader of the common parts of GQL and SPARQL: terms, prefixes, SELECT, edges and comparisons."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from tidings.core.iris import is_absolute, resolve_iri
from tidings.core.limits import check_limits
from tidings.core.source_text import Span
from tidings.errors import NotSupported, Place
from tidings.graphs.model import STRING, TYPE, XSD, Term, TermKind, iri, literal, meaning
from tidings.graphs.patterns import pattern_errors as refusals
from tidings.graphs.patterns.pattern_tokens import body, tokens_of, unescaped
from tidings.graphs.patterns.pattern_tree import BLANK, Constraint, ConstraintKind, PatternEdge, Variable
from tidings.values import Instant, parse_instant

Operand = Term | Variable

_BAD_HOST = re.compile(r"[^:/?#]+://(?![^/?#]*\[[0-9A-Fa-fv:.]+\])[^/?#]*[\[\]]")
"""A bracket that is not around an IP address: such a base is not an IRI."""

_LOCAL_ESCAPE = re.compile(r"\\(.)")


class TermReader:
    """Recursive-descent parser of one text. `at` is the next token; each method reads on from there."""

    def __init__(self, text: str, prefixes: Mapping[str, str]) -> None:
        self.tokens = tokens_of(text)
        self.words, self._ends = self.tokens.words, self.tokens.edges
        self.table = prefixes
        self.declared: dict[str, str] = {}
        self.base = ""
        self.at = self.made = 0
        self.sparql = False

    def operand(self, accepted: str = "a variable or a value") -> Operand:
        """Parse a variable, an IRI, a blank node or a literal."""
        word = self.words[self.at]
        if word[:1] in ("?", "$") and len(word) > 1:
            return self.variable()
        if word.startswith(BLANK):
            self.at += 1
            return Variable(word, self.span(self.at - 1))
        if self.is_name(self.at):
            return self.iri()
        if word[:1] in ("'", '"'):
            return self.string()
        return self.plain(word, accepted)

    def variable(self) -> Variable:
        self.at += 1
        return Variable(self.words[self.at - 1][1:], self.span(self.at - 1))

    def new_variable(self, position: int) -> Variable:
        """Make a variable for a blank node without a label, with a name that the text does not use."""
        self.made += 1
        while f"{BLANK}{self.made}" in self.words:
            self.made += 1
        return Variable(f"{BLANK}{self.made}", self.span(position))

    def is_iri(self, position: int) -> bool:
        return self.words[position][:1] == "<" and self.words[position][-1] == ">"

    def is_name(self, position: int) -> bool:
        """Return whether a token is an IRI, in full or with a prefix."""
        word = self.words[position]
        return self.is_iri(position) or (
            ":" in word and word[0] not in "\"'0123456789" and not word.startswith(BLANK)
        )

    def iri(self) -> Term:
        self.at += 1
        word = self.words[self.at - 1]
        if word[0] == "<":
            return iri(self.resolved(self.at - 1))
        prefix, _, local = word.partition(":")
        namespace = self.declared.get(prefix, self.table.get(prefix))
        if namespace is None:
            namespaces = {**self.table, **self.declared}
            raise refusals.unknown_prefix(prefix, namespaces, self.tokens.place(self.at - 1))
        return iri(namespace + (_LOCAL_ESCAPE.sub(r"\1", local) if "\\" in local else local))

    def resolved(self, position: int) -> str:
        written = self.unescaped(self.words[position][1:-1], position)
        if is_absolute(written):
            return written
        if not self.base or _BAD_HOST.match(self.base):
            raise refusals.relative(self.tokens.place(position))
        return resolve_iri(self.base, written)

    def unescaped(self, written: str, position: int) -> str:
        """Locate the token only if there is something to unescape: locating takes longer than reading."""
        return unescaped(written, self.tokens.place(position)) if "\\" in written else written

    def string(self) -> Term:
        text = self.unescaped(body(self.words[self.at]), self.at)
        self.at += 1
        word = self.words[self.at]
        if word[:1] == "@":
            self.at += 1
            return literal(text, language=word[1:])
        if word != "^^":
            return literal(text)
        self.at += 1
        if not self.is_name(self.at):
            raise refusals.expected("a datatype such as xsd:date", self.tokens, self.at)
        return literal(text, self.iri().text)

    def plain(self, word: str, accepted: str) -> Term:
        """Parse a number, a date, `true` or `false`."""
        self.at += 1
        if word.lower() in ("true", "false"):
            return literal(word.lower(), XSD + "boolean")
        if word[:1].isdecimal() or (word[:1] in (".", "+", "-") and len(word) > 1):
            return self.date(word) if word[4:5] == "-" and word[:4].isdecimal() else number(word)
        self.at -= 1
        if word in ("+", "-"):
            raise refusals.arithmetic(self.tokens.place(self.at))
        hint = f"write a string in quotes: '{word}'" if word.isalpha() and "value" in accepted else None
        raise refusals.expected(accepted, self.tokens, self.at, hint)

    def date(self, word: str) -> Term:
        place = self.tokens.place(self.at - 1)
        if self.sparql:
            raise refusals.bare_date(word, place)
        if parse_instant(word) is None:
            raise refusals.bad_date(place)
        return literal(word, XSD + ("dateTime" if "T" in word.upper() else "date"))

    def whole_iri(self) -> str:
        if not self.is_iri(self.at):
            raise refusals.expected("an IRI in <...>", self.tokens, self.at)
        self.at += 1
        return self.resolved(self.at - 1)

    def keyword(self, expected: str) -> None:
        word = self.words[self.at].upper()
        if word != expected:
            if word in refusals.OUTSIDE:
                raise refusals.outside(word, self.tokens.place(self.at))
            raise refusals.expected(expected, self.tokens, self.at)
        self.at += 1

    def symbol(self, expected: str, opened: int | None = None) -> None:
        if self.words[self.at] != expected:
            if opened is not None:
                raise refusals.not_closed(self.tokens, opened, self.at, expected)
            raise refusals.expected(f"'{expected}'", self.tokens, self.at)
        self.at += 1

    def outside(self) -> NotSupported:
        """Make the error for a part of SPARQL that is not supported."""
        two = " ".join(self.words[self.at : self.at + 2]).upper()
        if two in refusals.OUTSIDE:
            return refusals.outside(two, self.tokens.place(self.at, self.at + 1), sparql=self.sparql)
        return refusals.outside(self.words[self.at], self.tokens.place(self.at), sparql=self.sparql)

    def read(self, start: int) -> Place:
        """Locate the tokens that were read from `start` on."""
        return self.tokens.place(start, self.at - 1)

    def place(self, span: Span) -> Place:
        return Place.at(self.tokens.text, span.start, span.end)

    def span(self, start: int) -> Span:
        """Return the span from a token to the last one that was read."""
        last = self.at - 1 if self.at > start else start
        return Span(self._ends[2 * start], self._ends[2 * last + 1])


def number(word: str) -> Term:
    """Make a number; its spelling decides the datatype as in SPARQL: 5 integer, 5.0 decimal, 5e0 double."""
    if "e" in word or "E" in word:
        return literal(word, XSD + "double")
    return literal(word, XSD + ("decimal" if "." in word else "integer"))


@dataclass(frozen=True, slots=True)
class Limits:
    """Size limits of a subscription; `values` is the number of values in `in`."""

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
        word, position = self.words[self.at], self.at
        if not word.endswith(":") or word.count(":") > 1 or word == BLANK:
            raise refusals.expected("a prefix with its colon, such as ex:,", self.tokens, position)
        self.at += 1
        namespace, prefix = self.whole_iri(), word[:-1]
        if self.declared.setdefault(prefix, namespace) != namespace:
            raise refusals.declared_twice(prefix, self.tokens.place(position))

    def select(self) -> tuple[Variable, ...]:
        """Parse `SELECT ?x ?y`, or `SELECT *`, which is the empty tuple."""
        self.keyword("SELECT")
        if self.words[self.at].upper() in ("DISTINCT", "REDUCED"):  # bindings are distinct in any case
            self.at += 1
        if self.words[self.at] == "*":
            self.at += 1
            return ()
        selected = []
        while self.words[self.at][:1] in ("?", "$") and len(self.words[self.at]) > 1:
            selected.append(self.variable())
            self.at += self.words[self.at] == ","
        if self.words[self.at] == "(":
            raise refusals.projection(self.words[self.at + 1], self.tokens.place(self.at))
        if not selected:
            raise refusals.expected("variables or '*'", self.tokens, self.at)
        return tuple(selected)

    def subject(self) -> Operand:
        start = self.at
        operand = self.operand("a variable or an IRI")
        if isinstance(operand, Term) and operand.kind is TermKind.LITERAL:
            raise refusals.no_subject(self.read(start))
        return operand

    def property(self) -> Operand:
        start = self.at
        if self.words[start] == "a":
            self.at += 1
            return iri(TYPE)
        operand = self.operand("a property: an IRI, a variable or 'a'")
        name = operand.name if isinstance(operand, Variable) else ""
        if name.startswith(BLANK) or (isinstance(operand, Term) and operand.kind is TermKind.LITERAL):
            raise refusals.no_property(self.read(start))
        return operand

    def edge(self, subject: Operand, property: Operand, object: Operand, start: int) -> None:
        self.edges.append(PatternEdge(subject, property, object, self.span(start)))
        if len(self.edges) > self.limits.edges:
            raise refusals.too_many("edges", self.limits.edges, self.read(start))

    def compared(self, left: Operand, written: str, right: Operand, start: int) -> None:
        """Add a comparison of a variable with a value, in either order."""
        if isinstance(left, Variable) and isinstance(right, Term):
            self.constrain(left, self.constraint_kind(written, right, start), (right,), start)
        elif isinstance(left, Term) and isinstance(right, Variable):
            self.constrain(right, self.constraint_kind(_FLIPPED[written], left, start), (left,), start)
        else:
            raise refusals.no_comparison(isinstance(left, Variable), self.read(start), sparql=self.sparql)

    def constraint_kind(self, written: str, operand: Term, start: int) -> ConstraintKind:
        if operand.kind is TermKind.IRI:
            table = _OF_TERMS if self.sparql else _OF_CLASSES
            if written not in table:
                raise refusals.ordered_node(self.read(start))
            return table[written]
        if written not in ("=", "!=") and meaning(operand) is None:
            raise refusals.no_order(self.read(start))
        return _COMPARED[written]

    def add_text_constraint(self, variable: Operand, kind: ConstraintKind, text: Operand, start: int) -> None:
        """Add `contains` or `starts with`."""
        name = ("CONTAINS" if kind is ConstraintKind.CONTAINS else "STRSTARTS") if self.sparql else kind.value
        plain = isinstance(text, Term) and text.datatype == STRING
        if not isinstance(variable, Variable) or not isinstance(text, Term) or not plain:
            raise refusals.argument(name, self.read(start), sparql=self.sparql)
        if not text.text:
            raise refusals.empty_string(kind.value, self.read(start))
        self.constrain(variable, kind, (text,), start)

    def value_list(self, variable: Operand, start: int) -> None:
        """Parse the list after `in`."""
        opened = self.at
        operands: list[Operand] = []
        self.symbol("(")
        while not operands or self.words[self.at] == ",":
            self.at += bool(operands)
            first = self.at
            operands.append(self.operand("a value"))
            if not isinstance(operands[-1], Term):
                raise refusals.expected("a value", self.tokens, first)
            if len(operands) > self.limits.values:
                raise refusals.too_many("values", self.limits.values, self.read(opened))
        self.symbol(")", opened)
        if not isinstance(variable, Variable):
            raise refusals.no_comparison(0, self.read(start), sparql=self.sparql)
        terms = tuple(dict.fromkeys(term for term in operands if isinstance(term, Term)))
        self.constrain(variable, ConstraintKind.IN, terms, start)

    def constrain(
        self, variable: Variable, kind: ConstraintKind, operands: tuple[Term, ...], start: int
    ) -> None:
        if any(_lies_between(operand) for operand in operands):
            raise refusals.between_microseconds(self.read(start))
        self.constraints.append(Constraint(variable.name, kind, operands, self.span(start)))
        if len(self.constraints) > self.limits.constraints:
            raise refusals.too_many("constraints", self.limits.constraints, self.read(start))


def _lies_between(operand: Term) -> bool:
    """Return whether a term is an instant between two microseconds, which kernels cannot represent."""
    value = meaning(operand) if operand.kind is TermKind.LITERAL else None
    return value is not None and isinstance(value.value, Instant) and value.value.between
