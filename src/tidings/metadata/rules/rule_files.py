"""Parser of rule files: each rule is a name, a colon and the text.

    # servers of our own
    ours:  search CycleProvider c register c where c.serverHost contains 'uni-passau.de'

    large: search CycleProvider c register c
           where c.serverInformation.memory > 64

Indented lines continue the rule before them. Errors have the line and column in the file.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tidings.errors import InputError, Place, SubscriptionError, SyntaxProblem
from tidings.metadata.rules import validation
from tidings.metadata.rules.rule_parser import parse_rule
from tidings.metadata.rules.syntax import Rule
from tidings.metadata.schema.model import Schema

_NAME = re.compile(r"[^\W\d][\w.-]*")
_ACCEPTED = "NAME: search CLASS c register c where ..."


@dataclass(slots=True)
class _SourceText:
    """The text of a rule in a file: the pieces of its lines with their offsets."""

    at: int
    pieces: list[tuple[int, str]] = field(default_factory=list)

    @property
    def text(self) -> str:
        return " ".join(piece for _, piece in self.pieces)

    def file_offset(self, offset: int) -> int:
        """Convert an offset in the text to one in the file."""
        for start, piece in self.pieces[:-1]:
            if offset <= len(piece):
                return start + offset
            offset -= len(piece) + 1
        return self.pieces[-1][0] + offset


class RuleFile:
    """The rules of a file by name, with their places."""

    def __init__(self, text: str, name: str = "rules") -> None:
        self._text, self._name = text, name
        self._written: dict[str, _SourceText] = {}
        self._split()
        self._trees = {name: self._parse(name) for name in self._written}

    @property
    def texts(self) -> dict[str, str]:
        return {name: written.text for name, written in self._written.items()}

    def check(self, schema: Schema) -> None:
        """Check rules against a schema, except for those that search a rule outside of the file."""
        types: dict[str, str] = {}
        for name in validation.order_by_dependency(self._trees):
            names = schema.classes.keys() | types.keys()
            if all(each.extension in names for each in self._trees[name].searched):
                types[name] = self._check_rule(name, schema, types)

    def _check_rule(self, name: str, schema: Schema, types: Mapping[str, str]) -> str:
        try:
            validation.check_rule_name(name, schema)
            return validation.check_rule(self._trees[name], schema, types, self._written[name].text)
        except SubscriptionError as problem:
            raise self._in_file(name, problem) from problem

    def _split(self) -> None:
        last: _SourceText | None = None
        for start, line in _lines(self._text):
            bare = line.strip()
            if not bare or bare.startswith("#"):
                continue
            if line[0] in " \t":
                if last is None:
                    hint = "start a rule at the beginning of a line; indented lines continue it"
                    raise self._problem(
                        "an indented line without a rule before it", start + line.index(bare), len(bare), hint
                    )
                last.pieces.append((start + line.index(bare), bare))
            else:
                last = self._start_rule(start, line)

    def _start_rule(self, offset: int, line: str) -> _SourceText:
        name, colon, body = line.partition(":")
        bare = name.rstrip()
        if not colon or not _NAME.fullmatch(bare):
            message = "a rule starts with its name and a colon" if not colon else "not a valid rule name"
            raise self._problem(message, offset, len(bare), f"write {_ACCEPTED}")
        if bare in self._written:
            first = Place.at(self._text, self._written[bare].at).line
            raise self._problem(
                f"duplicate rule '{bare}'", offset, len(bare), f"the first is in line {first}"
            )
        written = self._written[bare] = _SourceText(offset)
        if body.strip():
            start = offset + len(name) + 1 + len(body) - len(body.lstrip())
            written.pieces.append((start, body.strip()))
        return written

    def _parse(self, name: str) -> Rule:
        written = self._written[name]
        if not written.pieces:
            raise self._problem(f"the rule '{name}' has no text", written.at, len(name), f"write {_ACCEPTED}")
        try:
            return parse_rule(written.text)
        except SubscriptionError as problem:
            raise self._in_file(name, problem) from problem

    def _problem(self, message: str, start: int, length: int, hint: str) -> SyntaxProblem:
        return SyntaxProblem(
            f"{self._name}: {message}", place=Place.at(self._text, start, start + length), hint=hint
        )

    def _in_file(self, name: str, problem: SubscriptionError) -> SubscriptionError:
        """Move a problem to its place in the file."""
        message = f"{self._name}, rule '{name}': {problem.what}"
        if problem.place is None:
            return problem.with_place(message, Place.at(self._text, self._written[name].at))
        start = self._written[name].file_offset(problem.place.column - 1)
        return problem.with_place(message, Place.at(self._text, start, start + problem.place.length))


def parse_rule_file(file: Path) -> RuleFile:
    """Read and parse a file of rules."""
    try:
        body = file.read_bytes()
    except OSError as error:
        raise InputError(f"cannot read '{file}'", received=error.strerror) from error
    try:
        text = body.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = body.count(b"\n", 0, error.start) + 1
        raise InputError(
            f"'{file}' is not UTF-8", where=f"line {line}", accepted="a text in UTF-8"
        ) from error
    return RuleFile(text.replace("\r\n", "\n"), file.name)


def _lines(text: str) -> Iterator[tuple[int, str]]:
    offset = 0
    for line in text.split("\n"):
        yield offset, line
        offset += len(line) + 1
