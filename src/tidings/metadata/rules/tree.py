"""Syntax trees of rules and queries over metadata.

search CycleProvider c register c where c.serverHost contains 'uni-passau.de' and c.serverInformation.memory > 64
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from tidings.core.source_text import NOWHERE, Span
from tidings.values import Scalar


class Operator(Enum):
    """The operator of a comparison."""

    EQUAL = "="
    UNEQUAL = "!="
    LESS = "<"
    AT_MOST = "<="
    GREATER = ">"
    AT_LEAST = ">="
    CONTAINS = "contains"


@dataclass(frozen=True, slots=True)
class Step:
    """`.memory`, or `.tags?` for any value of a set-valued property."""

    property: str
    any: bool = False
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Path:
    """A variable and the steps from it: `c`, `c.serverInformation.memory`."""

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
    operator: Operator
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
    """The declaration of a variable: `CycleProvider c`. `extension` is a class or the name of another rule."""

    extension: str
    variable: str
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule: it registers the resources of `register` for which other variables can be bound so that `where` holds."""

    searched: tuple[Variable, ...]
    register: str
    where: Condition | None = None


@dataclass(frozen=True, slots=True)
class Query:
    """A rule that is evaluated once, with selected paths, an order and a limit."""

    searched: tuple[Variable, ...]
    of: str
    where: Condition | None = None
    select: tuple[Path, ...] = ()
    order: tuple[tuple[Path, bool], ...] = ()
    """Paths to sort by, each with whether it is descending."""

    limit: int | None = None

    @property
    def rule(self) -> Rule:
        """The rule that finds the results."""
        return Rule(self.searched, self.of, self.where)
