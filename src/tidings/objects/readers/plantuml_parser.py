"""PlantUML's class diagrams: classes with members, inheritance, associations with cardinalities, stereotypes.

    class Student <<subscriber>> { name : String }
    Student "*" -- "*" Course : attends <<implicit>> >

`parse` gives what the lines of a diagram say (`plantuml_tree`). The grammar of a line is `plantuml.lark`; which lines
there are is in `plantuml_lines`. What is not understood is in the tree, too: all of it is told at once.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from importlib.resources import files

from lark import Lark, Token, Tree
from lark.exceptions import UnexpectedInput

from tidings.core.language_hints import refuse_unreadable
from tidings.core.suggest import closest
from tidings.objects.readers.plantuml_lines import (
    GROUP,
    MAX_LINE,
    Line,
    blank_comments,
    find_class_names,
    find_note_names,
    skip_presentation,
    split_lines,
)
from tidings.objects.readers.plantuml_tree import (
    Declaration,
    Diagram,
    Member,
    Relationship,
    SyntaxProblem,
    Word,
    build_declaration,
    build_relationship,
    build_stereotypes,
    build_word,
    unquote_name,
)

MAX_LENGTH, MOST_PUZZLES = 300_000, 100
"""Of a text in which nothing is understood, so many lines are enough to be told."""

CLASS_KEYWORDS = frozenset(("abstract", "class", "dataclass", "entity", "exception", "record", "struct"))
"""Kinds of declarations that have objects. Interfaces have none, and enumerations are types of attributes."""

_DECLARES = re.compile(
    r"(?:abstract\s+class|static\s+class|abstract|class|dataclass|entity|enum|exception|interface|record|struct)(?=[\s\"])"
)
_MEMBER_LINE = re.compile(r'("[^"]*"|[^\W\d]\w*(?:(?:\.|::)\w+)*)\s*:(?!:)\s*(.*)', re.DOTALL)
_ASSOCIATION_CLASS = re.compile(r"\([^(),]*,[^(),]*\)\s*[-.=<]|[^:]*[-.=>]\s*\([^():,]*,[^():,]*\)\s*(?::|$)")
_PACKAGE = re.compile(r"(?:package|namespace)\b", re.IGNORECASE)
_SEPARATOR = re.compile(r"--|\.\.|==|__")
_METHOD = re.compile(r"[^:]*\([^()]*\)\s*(?::.*|\{.*|<<.*)?$|.*\{method\}", re.DOTALL)
_STATIC = re.compile(r"\{(?:static|classifier)\}")
_ARRAY = re.compile(r"\[[^\]]*\]$")
_NAME = re.compile(r"\w+(?: \w+)*")

_FORMS = {
    "declaration": "such as class Student <<subscriber>> {",
    "relation": 'such as Student "*" -- "*" Course : attends <<implicit>>',
    "member": "such as name : String",
}
_WORDS = (
    "class",
    "abstract class",
    "entity",
    "interface",
    "enum",
    "package",
    "note",
    "skinparam",
    "hide",
    "title",
)


def parse_diagram(text: str) -> Diagram:
    """What a diagram says."""
    refuse_unreadable(text, MAX_LENGTH)
    return _Reader(text).read()


class _Reader:
    """Goes through the lines; what it finds it puts where it belongs."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.plain = blank_comments(text)
        self.declared: list[Declaration] = []
        self.members: list[Member] = []
        self.related: list[Relationship] = []
        self.puzzles: list[SyntaxProblem] = []
        self.others = set(find_note_names(self.plain))
        self.groups: list[Line] = []

    def read(self) -> Diagram:
        waiting = split_lines(self.plain)
        for line in skip_presentation(waiting, find_class_names(self.plain)):
            if line.unended or len(line.text) > MAX_LINE:
                what = (
                    "this is never ended" if line.unended else f"a line of more than {MAX_LINE:,} characters"
                )
                self._puzzle(line, what)
            elif _DECLARES.match(line.text):
                self._declaration(line, waiting)
            else:
                self._line(line)
            if len(self.puzzles) >= MOST_PUZZLES:
                break
        for group in self.groups:
            self._puzzle(group, "this is never closed", "a line } behind what is in it")
        return Diagram(
            self.text,
            tuple(self.declared),
            tuple(self.members),
            tuple(self.related),
            frozenset(self.others),
            tuple(self.puzzles),
        )

    def _line(self, line: Line) -> None:
        member = _MEMBER_LINE.fullmatch(line.text)
        if found := GROUP.match(line.text):
            if not found[1]:
                self.groups.append(line)
        elif line.text == "}":
            if self.groups:
                self.groups.pop()
            else:
                self._puzzle(line, "this } closes nothing")
        elif line.text.startswith("!"):
            self._puzzle(line, "the preprocessor is not run, and nothing is included", "the diagram itself")
        elif _ASSOCIATION_CLASS.match(line.text):
            hint = "a class between the two, with an association to each"
            self._puzzle(line, "an association that is a class, too", hint=hint)
        elif member:
            owner = unquote_name(member[1], line.start)
            self._member(Line(member[2].strip(), line.start + member.start(2)), owner)
        else:
            self._relation(line)

    def _declaration(self, line: Line, waiting: Iterator[Line]) -> None:
        tree = self._parsed("declaration", line)
        if tree is None:
            if line.text.endswith("{"):
                list(_body(waiting, line))  # its lines are members, and no more mistakes
            return
        made = replace(build_declaration(tree, line.start), within=self._within())
        body = next((each for each in tree.children if isinstance(each, Token) and each.type == "BODY"), None)
        rows = list(_rows(body, line, waiting)) if body is not None else []
        if rows and rows[-1].unended:
            self._puzzle(line, "this class is never closed", "a line } behind its members")
            rows.pop()
        if made.kind not in CLASS_KEYWORDS:
            self.others.add(made.name.text)
            return
        self.declared.append(made)
        for row in rows:
            self._member(row, made.name)

    def _within(self) -> tuple[str, ...]:
        """The packages around: two classes of one name may be in two of them."""
        return tuple(each.text for each in self.groups if _PACKAGE.match(each.text))

    def _member(self, line: Line, owner: Word) -> None:
        text = line.text
        if not text or _SEPARATOR.match(text) or _METHOD.match(text) or _STATIC.search(text):
            return
        tree = self._parsed("member", line)
        if tree is not None:
            self._attribute(tree, line, owner)

    def _attribute(self, tree: Tree[Token], line: Line, owner: Word) -> None:
        """`String name`, `name : String`, `odd name : String`: without a colon the last word is the name."""
        tokens = [each for each in tree.children if isinstance(each, Token)]
        words = [each for each in tokens if each.type == "TYPED"]
        typed = [build_word(each, line.start) for each in words]
        behind = next((str(each) for each in tokens if each.type == "TYPE"), None)
        named = typed if behind else typed[-1:]
        text = _ARRAY.sub("", " ".join(each.text for each in named))
        name = Word(text, named[0].start, named[-1].end)
        if not _NAME.fullmatch(text) and not words[-1].startswith('"'):
            self.puzzles.append(
                SyntaxProblem(replace(name, text=line.text), "not a name of an attribute", _FORMS["member"])
            )
            return
        type = behind or " ".join(each.text for each in typed[:-1]) or None
        self.members.append(Member(owner, name, type, build_stereotypes(tree, line.start)))

    def _relation(self, line: Line) -> None:
        tree = self._parsed("relation", line)
        if tree is not None:
            self.related.append(build_relationship(tree, line.start))

    def _parsed(self, form: str, line: Line) -> Tree[Token] | None:
        try:
            return _parser().parse(line.text, start=form)
        except UnexpectedInput as unexpected:
            self._not_understood(form, line, unexpected)
            return None

    def _not_understood(self, form: str, line: Line, unexpected: UnexpectedInput) -> None:
        at = unexpected.pos_in_stream
        at = len(line.text) if at is None or at < 0 else min(at, len(line.text))
        found = re.compile(r"\w+|\S|$").search(line.text, at)
        start, end = found.span() if found else (at, at)
        first = re.match(r"\w*", line.text)
        known = form == "relation" and first is not None and re.search(r"-|\.\.|==", line.text) is None
        hint = _near(first[0]) if known and first else None
        if known:
            start, end = 0, len(line.text)
        word = Word(line.text[start:end], line.start + start, line.start + max(end, start + 1))
        self.puzzles.append(SyntaxProblem(word, "this is not understood", _FORMS[form], hint))

    def _puzzle(self, line: Line, what: str, accepted: str | None = None, hint: str | None = None) -> None:
        word = Word(line.text, line.start, line.start + min(len(line.text), MAX_LINE))
        self.puzzles.append(SyntaxProblem(word, what, accepted, hint))


def _near(word: str) -> str | None:
    meant = closest(word.lower(), _WORDS, 0.7)
    return f"did you mean '{meant}'?" if meant else None


@cache
def _parser() -> Lark:
    grammar = files(__package__).joinpath("plantuml.lark").read_text(encoding="utf-8")
    return Lark(
        grammar,
        parser="lalr",
        lexer="contextual",
        start=["declaration", "relation", "member"],
        maybe_placeholders=False,
    )


def _rows(body: Token, line: Line, waiting: Iterator[Line]) -> Iterator[Line]:
    """The members in the braces of a class, on the same line or below; the last is `unended` if they never close."""
    rest, start = body[1:], line.start + (body.start_pos or 0) + 1
    if rest.count("}") > rest.count("{"):
        inside = rest[: rest.rindex("}")]
        for part in re.finditer(r"[^;]+", inside):
            if part[0].strip():
                yield Line(part[0].strip(), start + part.start() + len(part[0]) - len(part[0].lstrip()))
        return
    if rest.strip():
        yield Line(rest.strip(), start + len(rest) - len(rest.lstrip()))
    yield from _body(waiting, line)


def _body(waiting: Iterator[Line], line: Line) -> Iterator[Line]:
    for each in waiting:
        if each.text.count("}") > each.text.count("{"):
            before = each.text[: each.text.rindex("}")].strip()
            if before:
                yield Line(before, each.start)
            return
        yield each
    yield Line("", line.start, unended=True)
