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
from difflib import get_close_matches
from functools import cache
from importlib.resources import files
from typing import cast

from lark import Lark, Token, Tree
from lark.exceptions import UnexpectedInput

from tidings.languages.plantuml_lines import (
    GROUP,
    Line,
    class_names,
    lines,
    meaningful,
    note_names,
    without_comments,
)
from tidings.languages.plantuml_tree import Declared, Diagram, Member, Puzzle, Related, Stereotype, Word
from tidings.languages.readable import refuse_unreadable

MAX_LENGTH, MAX_LINE = 1_000_000, 2_000

CLASSES = frozenset(("abstract", "class", "dataclass", "entity", "exception", "record", "struct"))
"""Kinds of declarations that have objects. Interfaces have none, and enumerations are types of attributes."""

_DECLARES = re.compile(
    r"(?:abstract\s+class|static\s+class|abstract|class|dataclass|entity|enum|exception|interface|record|struct)(?=[\s\"])"
)
_MEMBER_LINE = re.compile(r'("[^"]*"|[^\W\d]\w*(?:(?:\.|::)\w+)*)\s*:(?!:)\s*(.*)', re.DOTALL)
_PACKAGE = re.compile(r"(?:package|namespace)\b", re.IGNORECASE)
_SEPARATOR = re.compile(r"--|\.\.|==|__")
_METHOD = re.compile(r"[^:]*\([^()]*\)\s*(?::.*|\{.*|<<.*)?$|.*\{method\}", re.DOTALL)
_STATIC = re.compile(r"\{(?:static|classifier)\}")
_IDENTIFIER = re.compile(r"\w+")

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


def parse(text: str) -> Diagram:
    """What a diagram says."""
    refuse_unreadable(text, MAX_LENGTH)
    return _Reader(text).read()


class _Reader:
    """Goes through the lines; what it finds it puts where it belongs."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.plain = without_comments(text)
        self.declared: list[Declared] = []
        self.members: list[Member] = []
        self.related: list[Related] = []
        self.puzzles: list[Puzzle] = []
        self.others = set(note_names(self.plain))
        self.groups: list[Line] = []

    def read(self) -> Diagram:
        waiting = lines(self.plain)
        for line in meaningful(waiting, class_names(self.plain)):
            if line.unended or len(line.text) > MAX_LINE:
                what = (
                    "this is never ended" if line.unended else f"a line of more than {MAX_LINE:,} characters"
                )
                self._puzzle(line, what)
            elif _DECLARES.match(line.text):
                self._declaration(line, waiting)
            else:
                self._line(line)
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
        elif member:
            owner = _plain(member[1], line.start)
            self._member(Line(member[2].strip(), line.start + member.start(2)), owner)
        else:
            self._relation(line)

    def _declaration(self, line: Line, waiting: Iterator[Line]) -> None:
        tree = self._parsed("declaration", line)
        if tree is None:
            if line.text.endswith("{"):
                list(_body(waiting, line))  # its lines are members, and no more mistakes
            return
        made = replace(_declared(tree, line.start), within=self._within())
        body = next((each for each in tree.children if isinstance(each, Token) and each.type == "BODY"), None)
        rows = list(_rows(body, line, waiting)) if body is not None else []
        if rows and rows[-1].unended:
            self._puzzle(line, "this class is never closed", "a line } behind its members")
            rows.pop()
        if made.kind not in CLASSES:
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
        tokens = [each for each in tree.children if isinstance(each, Token)]
        typed = [each for each in tokens if each.type == "TYPED"]
        behind = next((str(each) for each in tokens if each.type == "TYPE"), None)
        name = _word(typed[-1], line.start)
        if not _IDENTIFIER.fullmatch(name.text) and not typed[-1].startswith('"'):
            self.puzzles.append(Puzzle(name, "not a name of an attribute", _FORMS["member"]))
            return
        before = " ".join(typed[:-1])
        self.members.append(Member(owner, name, behind or before or None, _stereotypes(tree, line.start)))

    def _relation(self, line: Line) -> None:
        tree = self._parsed("relation", line)
        if tree is not None:
            self.related.append(_related(tree, line.start))

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
        self.puzzles.append(Puzzle(word, "this is not understood", _FORMS[form], hint))

    def _puzzle(self, line: Line, what: str, accepted: str | None = None) -> None:
        word = Word(line.text, line.start, line.start + min(len(line.text), MAX_LINE))
        self.puzzles.append(Puzzle(word, what, accepted))


def _near(word: str) -> str | None:
    near = get_close_matches(word.lower(), _WORDS, n=1, cutoff=0.7)
    return f"did you mean '{near[0]}'?" if near else None


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


def _plain(text: str, start: int) -> Word:
    """A name without its quotes."""
    bare = text[1:-1] if text.startswith('"') else text
    return Word(bare, start, start + len(text))


def _word(token: Token, start: int) -> Word:
    return _plain(str(token), start + (token.start_pos or 0))


def _declared(tree: Tree[Token], start: int) -> Declared:
    children = tree.children
    kind = str(children[0]).split()[0].replace("static", "class")
    names = cast("Tree[Token]", children[1])
    named = [each for each in names.children if isinstance(each, Token)]
    name = next((each for each in named if each.type == "NAME"), named[0])
    above = {"extends": list[Word](), "implements": list[Word]()}
    for each in tree.find_data("lineage"):
        tokens = [child for child in each.children if isinstance(child, Token) and child.type != "GENERIC"]
        above[str(tokens[0])] += (_word(token, start) for token in tokens[1:])
    return Declared(
        kind,
        _word(name, start),
        _stereotypes(tree, start),
        tuple(above["extends"]),
        tuple(above["implements"]),
    )


def _related(tree: Tree[Token], start: int) -> Related:
    tokens = [each for each in tree.children if isinstance(each, Token) and each.type not in ("COLOR", "TAG")]
    at = next(place for place, each in enumerate(tokens) if each.type == "ARROW")
    before, after = tokens[:at], tokens[at + 1 :]
    label = next(iter(tree.find_data("label")), None)
    words = next(iter(tree.find_data("words")), None)
    signs = {each.type: str(each) for each in (label.children if label else ()) if isinstance(each, Token)}
    return Related(
        _word(before[0], start),
        _word(after[-1], start),
        _word(tokens[at], start),
        _word(before[1], start) if len(before) > 1 else None,
        _word(after[0], start) if len(after) > 1 else None,
        _word(cast(Token, words.children[0]), start) if words else None,
        signs.get("READ_LEFT") or signs.get("READ_RIGHT") or "",
        _stereotypes(label, start) if label else (),
    )


def _stereotypes(tree: Tree[Token], start: int) -> tuple[Stereotype, ...]:
    """Stereotypes in the order of the text; tagged values in braces belong to the one before them."""
    made: list[Stereotype] = []
    for each in tree.children:
        if not isinstance(each, Tree):
            continue
        if each.data in ("stereotype", "head_stereotype"):
            made += _in_brackets(each, start)
        elif each.data == "tags":
            last = made.pop() if made else Stereotype(Word("", start, start))
            made.append(Stereotype(last.name, (*last.tags, *_tags(each, start))))
    return tuple(made)


def _in_brackets(tree: Tree[Token], start: int) -> Iterator[Stereotype]:
    """`<<implicit, propagates {kinds = update}>>` is two of them."""
    words = next((t for t in tree.children if isinstance(t, Token) and t.type == "STEREO_WORDS"), None)
    tags = next((_tags(each, start) for each in tree.children if isinstance(each, Tree)), ())
    if words is None:
        return
    first = start + (words.start_pos or 0)
    names = [
        Word(part[0].strip(), first + part.start(), first + part.end())
        for part in re.finditer(r"[^,\s][^,]*", words)
    ]
    yield from (Stereotype(name) for name in names[:-1])
    yield from (Stereotype(name, tags) for name in names[-1:])


def _tags(tree: Tree[Token], start: int) -> tuple[tuple[Word, Word], ...]:
    pairs = (cast("list[Token]", each.children) for each in tree.find_data("tag"))
    return tuple((_word(key, start), _word(value, start)) for key, value in pairs)
