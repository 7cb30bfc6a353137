"""The tree of a rule or a query over metadata.

search CycleProvider c register c where c.serverHost contains 'uni-passau.de' and c.serverInformation.memory > 64
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from tidings.core.source_text import NOWHERE, Span
from tidings.values import Scalar


class Operator(Enum):
    """How two operands must stand to each other."""

    EQUAL = "="
    UNEQUAL = "!="
    LESS = "<"
    AT_MOST = "<="
    GREATER = ">"
    AT_LEAST = ">="
    CONTAINS = "contains"


@dataclass(frozen=True, slots=True)
class Step:
    """`.memory`, or `.tags?` for any of the values of a property that has several."""

    property: str
    any: bool = False
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Path:
    """A variable, and the way from it: `c`, `c.serverInformation.memory`."""

    variable: str
    steps: tuple[Step, ...] = ()
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Constant:
    """`64`, `'uni-passau.de'`, `true`; `<doc.rdf#host>` is a resource."""

    value: Scalar
    is_resource: bool = False
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Comparison:
    left: Path | Constant
    compares: Operator
    right: Path | Constant
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class And:
    """All parts hold."""

    parts: tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class Or:
    """Some part holds."""

    parts: tuple[Condition, ...]


Condition = Comparison | And | Or


@dataclass(frozen=True, slots=True)
class Variable:
    """`CycleProvider c`: what a variable stands for. `extension` is a class, or the name of another rule."""

    extension: str
    variable: str
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Rule:
    """Register what `register` stands for, if there is something for each other variable so that `where` holds."""

    searched: tuple[Variable, ...]
    register: str
    where: Condition | None = None


@dataclass(frozen=True, slots=True)
class Query:
    """A rule that is asked once: what is shown of each result, in which order, and how many."""

    searched: tuple[Variable, ...]
    of: str
    where: Condition | None = None
    select: tuple[Path, ...] = ()
    order: tuple[tuple[Path, bool], ...] = ()
    """Paths by which results are sorted, and whether the greatest comes first."""

    limit: int | None = None

    @property
    def rule(self) -> Rule:
        """The rule whose result is asked for."""
        return Rule(self.searched, self.of, self.where)
