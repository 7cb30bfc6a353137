"""Declarations of reference tables, which publications are joined with before matching (paper 003, section 3.1).

    declare("sectors", "sectors.csv", key="symbol", on="/stock/symbol")

A document whose value at `/stock/symbol` occurs in the column `symbol` gets the other columns of that row, as
`<ref><sector>tech</sector></ref>` at its end. An event gets them as attributes: `ref.sector`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from tidings.atoms import AtomShape
from tidings.core.suggest import is_name, printable
from tidings.core.yaml_nodes import Document
from tidings.documents.model import Axis, LinearStep, is_named, steps_of
from tidings.documents.xpath import xpath_parser
from tidings.documents.xpath.xpath_tokens import is_name as is_token_name
from tidings.documents.xpath.xpath_tokens import tokens_of
from tidings.documents.xpath.xpath_tree import PathTest
from tidings.errors import InputError, SchemaError, SyntaxProblem

REF = "ref"
"""Name under which added values appear: an element in documents, a prefix of attributes in events."""

SPARK = "spark:"
FORMATS = (".csv", ".jsonl", ".ndjson", ".parquet")
ACCEPTED = "a .csv, .jsonl, .ndjson or .parquet file, or spark:TABLE"

_DOCUMENT_PATH = re.compile(r"\s*(?:/|declare\s)")
_NAME = re.compile(r"[\w.-]{1,64}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Reference:
    """A declared table: its file, its key column, the path to key values in publications, and the fields to add.

    Without `fields`, all columns except the key are added. `version` distinguishes declarations of the same name.
    """

    name: str
    file: str
    key: str
    on: str
    fields: tuple[str, ...] = ()
    version: int = 0

    @property
    def shape(self) -> AtomShape:
        """The shape of publications that the table is joined with."""
        return AtomShape.TREE if self.is_of_documents else AtomShape.FLAT

    @property
    def is_of_documents(self) -> bool:
        """Whether the table enriches documents; otherwise it enriches events."""
        return _DOCUMENT_PATH.match(self.on) is not None

    @property
    def shown_file(self) -> str:
        """The file without credentials of object stores, which may precede an @."""
        return re.sub(r"//[^/@]*@", "//", self.file)

    @property
    def spark_table(self) -> str | None:
        """The name of the Spark table, or None for a file."""
        return self.file.removeprefix(SPARK) if self.file.startswith(SPARK) else None


def declare(
    name: str, file: str, key: str, on: str, fields: Iterable[str] = (), beside: Path | None = None
) -> Reference:
    """Check and build a declaration. Relative files are resolved against `beside`, or the working directory."""
    if not _NAME.fullmatch(name):
        accepted = "up to 64 letters, digits, dots, hyphens and underscores"
        raise InputError(
            "invalid name of a reference table", received=repr(printable(name)), accepted=accepted
        )
    reference = Reference(name, _resolve_file(file, beside), key, on, tuple(dict.fromkeys(fields)))
    _check_path(reference)
    for field in (key, *reference.fields):
        if not is_name(field):
            raise InputError("invalid column name", received=repr(printable(field)))
    if reference.is_of_documents:
        for field in reference.fields:
            check_element_name(field)
    return reference


def _resolve_file(file: str, beside: Path | None) -> str:
    if file.startswith(SPARK):
        if not is_name(file.removeprefix(SPARK)):
            raise InputError(
                "invalid name of a Spark table",
                received=repr(file),
                accepted="spark:TABLE",
            )
        return file
    if not file.lower().endswith(FORMATS):
        raise InputError("unsupported table format", received=repr(printable(file)), accepted=ACCEPTED)
    return file if "://" in file else str(((beside or Path()) / file).absolute())


def _check_path(reference: Reference) -> None:
    if reference.is_of_documents:
        parse_linear_path(reference.on)
    elif not is_name(reference.on) or "/" in reference.on:
        raise InputError(
            "invalid path in publications",
            received=repr(printable(reference.on)),
            accepted="an attribute of events such as symbol, or a path in documents such as /stock/symbol",
            hint="start a path in documents with /" if "/" in reference.on else None,
        )


def parse_linear_path(text: str) -> tuple[LinearStep, ...]:
    """Parse a path in documents: XPath as in subscriptions, without predicates and comparisons."""
    expression = xpath_parser.parse(text)
    if (
        not isinstance(expression, PathTest)
        or expression.operator
        or any(step.predicates for step in expression.path.steps)
    ):
        accepted = "one path without predicates and comparisons, such as /stock/symbol or //stock/@id"
        raise InputError("not a simple path", received=repr(printable(text)), accepted=accepted)
    return tuple(LinearStep(step.axis, step.kind, step.name) for step in expression.path.steps)


def selects(steps: tuple[LinearStep, ...], tag_path: str) -> bool:
    """Return whether a linear path selects the nodes with this tag path."""
    reached = {0}
    for node in steps_of(tag_path):
        reached = set(_advance(steps, reached, node))
    return len(steps) in reached


def _advance(steps: tuple[LinearStep, ...], reached: set[int], node: LinearStep) -> Iterator[int]:
    """Yield the possible numbers of completed steps after one more node."""
    for done in reached:
        if done < len(steps):
            step = steps[done]
            if step.kind is node.kind and is_named(step.name, node.name):
                yield done + 1
            if step.axis is Axis.DESCENDANT:
                yield done


def check_element_name(field: str) -> None:
    """Reject a field that is not a valid element name: no XPath expression could select it."""
    try:
        is_valid = tokens_of(field).words == [field, "", ""] and is_token_name(field) and ":" not in field
    except SyntaxProblem:
        is_valid = False
    if not is_valid:
        raise InputError(
            "the field is not a valid element name",
            received=repr(printable(field)),
            accepted="a letter or _, then letters, digits, dots, hyphens and _",
            hint="rename the column, or list the columns to add with --field",
        )


_PARTS = ("file", "key", "on", "fields")


def load_text(text: str, beside: Path | None = None) -> tuple[Reference, ...]:
    """Parse declarations in YAML: a mapping from names to file, key, on and, optionally, a list of fields."""
    document = Document(text)
    references = []
    for name, key, node in document.items(document.root, "the reference tables"):
        parts = {part: value for part, _, value in document.items(node, name, _PARTS)}
        for part in _PARTS[:3]:
            if part not in parts:
                raise document.problem(key, f"{name} has no {part}", accepted="file, key and on")
        file, column, on = (document.text_of(parts[part], part) for part in _PARTS[:3])
        field_nodes = document.elements(parts["fields"], "fields") if "fields" in parts else []
        fields = [document.text_of(field_node, "a field") for field_node in field_nodes]
        try:
            references.append(declare(name, file, column, on, fields, beside))
        except InputError as problem:
            raise document.problem(key, f"{name}: {problem.headline()}", hint=problem.hint) from problem
    return tuple(sorted(references, key=lambda reference: reference.name))


def load(path: Path | str) -> tuple[Reference, ...]:
    """Load declarations from a YAML file; relative files are resolved against its folder."""
    file = Path(path)
    try:
        return load_text(file.read_text(encoding="utf-8"), file.absolute().parent)
    except OSError as problem:
        accepted = "a YAML file of reference tables"
        raise InputError(f"no file '{file}'", received=problem.strerror, accepted=accepted) from None
    except UnicodeDecodeError as problem:
        raise InputError(f"{file} is not UTF-8", where=f"byte {problem.start}", accepted="UTF-8") from None
    except SchemaError as problem:
        problem.what = f"{file}: {problem.what}"
        raise
