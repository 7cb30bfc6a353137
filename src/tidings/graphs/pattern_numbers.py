"""Graph patterns as numbers: rows of term and variable numbers, from which `pattern_layout` writes all of them at once.

Most patterns have different shapes, and comparing the tests of all of them took most of the compile time. So only
the numbers of their terms and variables are stored.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from tidings.atoms import Aspect
from tidings.graphs.keys import ANY, Key, path_of, term_text
from tidings.graphs.model import Term
from tidings.graphs.pattern_compiler import EndTest, end_test_of, shape_of
from tidings.graphs.pattern_layout import (
    FORM_BITS,
    MOST_VARIABLES,
    NO_OPERAND,
    Integers,
    PatternTable,
    irregular_tests,
    lay_out,
)
from tidings.graphs.pattern_words import constraint_words
from tidings.graphs.patterns.pattern_tree import Constraint, Pattern, Variable
from tidings.matching.compiler.blocks import operands_of
from tidings.matching.compiler.plan import (
    IrregularClauses,
    Operand,
    Operands,
    Relation,
    TestShape,
    TwigWriter,
)
from tidings.values import Kind

Form = tuple[Key, Aspect, Relation, Kind | None]
"""A test without its property and operand."""

_OF_EDGES: tuple[Form, ...] = (
    (Key.SUBJECT, Aspect.VALUE, Relation.EQ, Kind.STRING),
    (Key.OBJECT, Aspect.VALUE, Relation.EQ, Kind.STRING),
    (Key.OBJECT, Aspect.VALUE, Relation.EXISTS, None),
)
"""The tests that edges themselves imply, by their numbers in `pattern_layout`."""

_FORM_MASK = (1 << FORM_BITS) - 1


class PatternNumbers:
    """Collects patterns. Terms are numbered as strings of the twig writer."""

    def __init__(self, twigs: TwigWriter) -> None:
        self._twigs = twigs
        self.string, self.names = twigs.string, dict[str, int]()
        self._terms: dict[Term, int] = {}
        self._forms = {form: number for number, form in enumerate(_OF_EDGES)}
        self._operands: dict[tuple[Kind | None, Operand], int] = {(None, None): NO_OPERAND}
        self._rows, self._first = array("i"), array("q")
        self._subject, self._property, self._object = array("i"), array("i"), array("i")
        self._edge, self._form, self._operand = array("q"), array("i"), array("q")
        self._inexact = array("i")
        self._words, self._sizes, self._constraints = array("I"), array("i"), array("i")
        self._variable_word, self._variable_pattern, self._variable = array("q"), array("i"), array("i")

    def add(self, row: int, pattern: Pattern) -> bool:
        """Add the pattern of a row; return False if it has too many variables."""
        edges = pattern.edges
        subjects = [self._code(edge.subject) for edge in edges]
        properties = [self._code(edge.property) for edge in edges]
        objects = [self._code(edge.object) for edge in edges]
        names = {code for codes in (subjects, properties, objects) for code in codes if code < 0}
        if len(names) > MOST_VARIABLES:
            return False
        self.put(row, subjects, properties, objects, pattern.constraints)
        return True

    def _code(self, place: Term | Variable) -> int:
        if isinstance(place, Variable):
            return self.variable(place.name)
        code = self._terms.get(place)
        if code is None:
            code = self._terms[place] = self.string(term_text(place))
        return code

    def variable(self, name: str) -> int:
        """Return the number of a variable, which is negative."""
        return -1 - self.names.setdefault(name, len(self.names))

    def put(
        self,
        row: int,
        subjects: Sequence[int],
        properties: Sequence[int],
        objects: Sequence[int],
        constraints: Sequence[Constraint],
    ) -> None:
        """Add the edges of a row by their ends. Constrained variables must occur in some of them."""
        if len({*zip(subjects, properties, objects, strict=True)}) < len(subjects):
            once = dict.fromkeys(zip(subjects, properties, objects, strict=True))
            subjects, properties, objects = zip(*once, strict=True)
        self._rows.append(row)
        self._first.append(len(self._subject))
        words = len(self._words)
        for constraint in constraints:
            self._constrain(constraint, subjects, objects)
        self._sizes.append(len(self._words) - words)
        self._constraints.append(len(constraints))
        self._subject.extend(subjects)
        self._property.extend(properties)
        self._object.extend(objects)

    def _constrain(self, constraint: Constraint, subjects: Sequence[int], objects: Sequence[int]) -> None:
        variable, pattern = self.variable(constraint.variable), len(self._rows) - 1
        self._variable_word.append(len(self._words))
        self._variable_pattern.append(pattern)
        self._variable.append(variable)
        self._words.extend(constraint_words(constraint, 0, self.string))
        edge, is_subject = _first_edge(variable, subjects, objects)
        test = end_test_of(constraint, is_subject) if edge >= 0 else None
        if test is None or not test.whole:
            self._inexact.append(pattern)
        if test is not None:
            self._edge.append(len(self._subject) + edge)
            self._add_test(test)

    def _add_test(self, test: EndTest) -> None:
        form = (test.key, test.aspect, test.relation, test.kind)
        self._form.append(self._forms.setdefault(form, len(self._forms)))
        if _is_term(form):
            self._operand.append(self.string(str(test.operand)))
        else:
            self._operand.append(self._operands.setdefault((test.kind, test.operand), len(self._operands)))

    def finish(self, strings: pa.Array[Any]) -> IrregularClauses:
        """Write all patterns and return their clauses; `strings` are all strings by number."""
        if not self._rows:
            return IrregularClauses()
        laid = lay_out(self._numbered())
        first = self._twigs.add_part(laid.words, laid.sizes, laid.exact)
        rows = np.array(self._rows, np.int32)
        twigs = np.arange(first, first + len(rows), dtype=np.int32)
        lookup = _TestLookup(list(self._forms), [operand for _, operand in self._operands], strings)
        return IrregularClauses(rows, irregular_tests(laid.tests, lookup), twigs)

    def _numbered(self) -> PatternTable:
        """Return the columns as arrays."""
        codes = np.empty((len(self._subject), 3), np.int64)
        codes[:, 0], codes[:, 1], codes[:, 2] = self._subject, self._property, self._object
        columns = (
            *(self._edge, self._form, self._operand, self._inexact, self._words, self._sizes),
            *(self._constraints, self._variable_word, self._variable_pattern, self._variable),
        )
        return PatternTable(
            np.array(self._first),
            codes,
            max(1, len(self.names)),
            *(np.array(column, np.int64) for column in columns),
        )


def _first_edge(variable: int, subjects: Sequence[int], objects: Sequence[int]) -> tuple[int, bool]:
    """Return the first edge with the variable at an end, and whether it is the subject; -1 for a property."""
    for edge, (subject, object) in enumerate(zip(subjects, objects, strict=True)):
        if variable in (object, subject):
            return edge, object != variable
    return -1, False


def _is_term(form: Form) -> bool:
    """Return whether the operand is a term, which is among the patterns' strings."""
    return form[1:] == (Aspect.VALUE, Relation.EQ, Kind.STRING)


class _TestLookup:
    """Translates the numbers of tests and operands."""

    def __init__(self, forms: Sequence[Form], operands: Sequence[Operand], strings: pa.Array[Any]) -> None:
        self._forms, self._operands, self._strings = forms, operands, strings

    def __call__(self, shape: int, operand: Integers) -> tuple[TestShape, Operands]:
        """Return the shape of a test and its operands by their numbers."""
        form, property = self._forms[shape & _FORM_MASK], shape >> FORM_BITS
        key, aspect, relation, kind = form
        name = self._strings[property - 1].as_py().decode()[1:-1] if property else ANY
        test = shape_of(path_of(key, name), aspect, relation, kind)
        if _is_term(form):
            return test, Operands(self._strings.take(pa.array(operand)))
        return test, operands_of(test, [self._operands[number] for number in operand])
