"""A further kind of publications, as a plug-in would add it: lines of a log, with their own language.

ERROR payments timeout after 30 s       a publication
warning payments                        a subscription to this level or above, of this service
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from tidings.atoms import Atoms, AtomShape, Event
from tidings.errors import DecodeProblem, PublicationError, SyntaxProblem
from tidings.events import reference_matcher
from tidings.events.predicate_compiler import PredicateLanguage, parse_and_check
from tidings.kinds import (
    DecodedPublications,
    Environment,
    Evaluator,
    Example,
    Explanation,
    Kind,
    LanguageGuide,
    Part,
    Reader,
    Rehearsal,
)
from tidings.matching.compiler.language import Context, Language
from tidings.matching.compiler.plan import Plan

LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR")
LINE = re.compile(rb"([A-Z]+) (\w+) (.+)\n?")


def decode_line(body: bytes) -> Event:
    line = LINE.fullmatch(body)
    if line is None or line[1].decode() not in LEVELS:
        raise DecodeProblem("not a line of a log", accepted=f"LEVEL service message; {', '.join(LEVELS)}")
    return {
        "level": [LEVELS.index(line[1].decode())],
        "service": [line[2].decode()],
        "message": [line[3].decode()],
    }


def to_predicates(text: str) -> str:
    level, _, service = text.partition(" ")
    if level.upper() not in LEVELS:
        raise SyntaxProblem("not a level", received=level, accepted=", ".join(LEVELS).lower())
    condition = f"level >= {LEVELS.index(level.upper())}"
    return f"{condition} and service = '{service}'" if service else condition


class LogLanguage(Language):
    def compile(self, context: Context) -> Plan:
        return PredicateLanguage().compile(Context(to_predicates(context.text), None, context.limit))


class LogEvaluator(Evaluator):
    def __init__(self, line: Event) -> None:
        self._line = line

    def matches(self, language: str, text: str) -> bool:
        return reference_matcher.matches(parse_and_check(to_predicates(text)), self._line)

    def explain(self, language: str, text: str) -> Explanation:
        return Explanation(reference_matcher.explain(parse_and_check(to_predicates(text)), self._line))


class LogReader(Reader):
    def decode(self, media_type: str, buffer: Any, starts: Any, ends: Any) -> DecodedPublications:
        lines: list[Event] = []
        rejects: list[tuple[int, PublicationError]] = []
        for place, (start, end) in enumerate(zip(starts, ends, strict=True)):
            try:
                lines.append(decode_line(np.asarray(buffer[start:end]).tobytes()))
            except PublicationError as problem:
                lines.append({})
                rejects.append((place, problem))
        return DecodedPublications(Atoms.of(lines), pa.nulls(len(lines), pa.string()), rejects)

    def read(self, body: bytes, media_type: str, added: Sequence[Any] = ()) -> Evaluator:
        return LogEvaluator(decode_line(body))


class LogLines(Kind):
    name = "log line"
    shape = AtomShape.FLAT
    media_types = ("text/x-log",)
    languages = ("log",)
    suffixes = {".log": "text/x-log"}  # noqa: RUF012
    titles = {"text/x-log": "Log line"}  # noqa: RUF012
    sample = Part("text/x-log", b"DEBUG none nothing")

    def language(self, name: str) -> Language:
        return LogLanguage()

    def guide(self, name: str) -> LanguageGuide:
        examples = [Example("error", "all errors"), Example("loud", "not a level, and so not offered")]
        begins = rf"\s*(?:{'|'.join(LEVELS)})\b"
        return LanguageGuide(
            name, "Log levels", "lines of logs", examples, noun="a level of logs", begins=begins
        )

    def rehearse(self) -> Rehearsal:
        return Rehearsal(
            "log", ("info", "error payments"), "text/x-log", [b"ERROR payments timeout", b"INFO mail sent"]
        )

    def decode(self, body: bytes, media_type: str, schema: object = None) -> Event:
        return decode_line(body)

    def open(self, environment: Environment) -> Reader:
        return LogReader()


LOG_LINES = LogLines()
