"""Reference data: tables that publications are joined with before they are matched (paper 003, section 3.1).

    declare("sectors", "sectors.csv", key="symbol", on="/stock/symbol")

says that a document whose value at `/stock/symbol` is in the column `symbol` gets the other columns of that row, as
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
"""Where what a table adds is found: an element of documents, the beginning of an event's attribute."""

SPARK = "spark:"
FORMATS = (".csv", ".jsonl", ".ndjson", ".parquet")
ACCEPTED = "a .csv, .jsonl, .ndjson or .parquet file, or spark:TABLE"

_OF_DOCUMENTS = re.compile(r"\s*(?:/|declare\s)")
_NAME = re.compile(r"[\w.-]{1,64}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Reference:
    """A declared table: where it is, its key, where in publications the key's values stand, and what is added.

    Without `fields` all columns but the key are added. `version` tells one declaration of a name from a later one.
    """

    name: str
    file: str
    key: str
    on: str
    fields: tuple[str, ...] = ()
    version: int = 0

    @property
    def shape(self) -> AtomShape:
        """The shape of publications that it is joined with."""
        return AtomShape.TREE if self.is_of_documents else AtomShape.FLAT

    @property
    def is_of_documents(self) -> bool:
        """Whether documents are enriched; else events are."""
        return _OF_DOCUMENTS.match(self.on) is not None

    @property
    def shown_file(self) -> str:
        """The file without the keys of object stores, which may stand before an @."""
        return re.sub(r"//[^/@]*@", "//", self.file)

    @property
    def spark_table(self) -> str | None:
        """The name of the table, if it is one of Spark's."""
        return self.file.removeprefix(SPARK) if self.file.startswith(SPARK) else None


def declare(
    name: str, file: str, key: str, on: str, fields: Iterable[str] = (), beside: Path | None = None
) -> Reference:
    """A declaration, or a refusal of what cannot be one. Relative files stand in `beside`, or in this folder."""
    if not _NAME.fullmatch(name):
        accepted = "up to 64 letters, digits, points, hyphens and underscores"
        raise InputError("not a name of a reference table", received=repr(printable(name)), accepted=accepted)
    reference = Reference(name, _located(file, beside), key, on, tuple(dict.fromkeys(fields)))
    _check_path(reference)
    for field in (key, *reference.fields):
        if not is_name(field):
            raise InputError("not a name of a column", received=repr(printable(field)))
    if reference.is_of_documents:
        for field in reference.fields:
            check_element_name(field)
    return reference


def _located(file: str, beside: Path | None) -> str:
    if file.startswith(SPARK):
        if not is_name(file.removeprefix(SPARK)):
            raise InputError("a Spark table without a name", received=repr(file), accepted="spark:TABLE")
        return file
    if not file.lower().endswith(FORMATS):
        raise InputError(
            "not a kind of table that can be read", received=repr(printable(file)), accepted=ACCEPTED
        )
    return file if "://" in file else str(((beside or Path()) / file).absolute())


def _check_path(reference: Reference) -> None:
    if reference.is_of_documents:
        linear_path(reference.on)
    elif not is_name(reference.on) or "/" in reference.on:
        raise InputError(
            "not a path in publications",
            received=repr(printable(reference.on)),
            accepted="an attribute of events such as symbol, or a path in documents such as /stock/symbol",
            hint="paths in documents begin with /" if "/" in reference.on else None,
        )


def linear_path(text: str) -> tuple[LinearStep, ...]:
    """The steps of a path in documents. It is written as in subscriptions, without predicates and comparisons."""
    found = xpath_parser.parse(text)
    if not isinstance(found, PathTest) or found.operator or any(step.predicates for step in found.path.steps):
        accepted = "one path without predicates and comparisons, such as /stock/symbol or //stock/@id"
        raise InputError(
            "a path that asks for more than a place", received=repr(printable(text)), accepted=accepted
        )
    return tuple(LinearStep(step.axis, step.kind, step.name) for step in found.path.steps)


def leads_to(steps: tuple[LinearStep, ...], tag_path: str) -> bool:
    """Whether a linear path leads to the nodes with this tag path."""
    reached = {0}
    for node in steps_of(tag_path):
        reached = set(_onward(steps, reached, node))
    return len(steps) in reached


def _onward(steps: tuple[LinearStep, ...], reached: set[int], node: LinearStep) -> Iterator[int]:
    """How many steps may be done after one more node."""
    for done in reached:
        if done < len(steps):
            step = steps[done]
            if step.kind is node.kind and is_named(step.name, node.name):
                yield done + 1
            if step.axis is Axis.DESCENDANT:
                yield done


def check_element_name(field: str) -> None:
    """Refuse a field that cannot be the name of an element, since no XPath could ask about it."""
    try:
        good = tokens_of(field).words == [field, "", ""] and is_token_name(field) and ":" not in field
    except SyntaxProblem:
        good = False
    if not good:
        raise InputError(
            "a field that cannot be an element of a document",
            received=repr(printable(field)),
            accepted="a name that begins with a letter or _ and has letters, digits, points, hyphens and _",
            hint="rename the column, or say which ones are added with --field",
        )


_PARTS = ("file", "key", "on", "fields")


def load_text(text: str, beside: Path | None = None) -> tuple[Reference, ...]:
    """The declarations in a YAML text: by name, each with file, key, on and perhaps a list of fields."""
    document = Document(text)
    made = []
    for name, key, node in document.items(document.root, "the reference tables"):
        parts = {part: value for part, _, value in document.items(node, name, _PARTS)}
        for part in _PARTS[:3]:
            if part not in parts:
                raise document.problem(key, f"{name} has no {part}", accepted="file, key and on")
        file, column, on = (document.text_of(parts[part], part) for part in _PARTS[:3])
        listed = document.elements(parts["fields"], "fields") if "fields" in parts else []
        fields = [document.text_of(each, "a field") for each in listed]
        try:
            made.append(declare(name, file, column, on, fields, beside))
        except InputError as problem:
            raise document.problem(key, f"{name}: {problem.headline()}", hint=problem.hint) from problem
    return tuple(sorted(made, key=lambda one: one.name))


def load(path: Path | str) -> tuple[Reference, ...]:
    """The declarations in a YAML file; files that they name stand beside it."""
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
