"""Parser of PlantUML class diagrams: classes with members, inheritance, associations, stereotypes.

    class Student <<subscriber>> { name : String }
    Student "*" -- "*" Course : attends <<implicit>> >

`parse_diagram` builds the tree in `plantuml_tree`. The grammar of a line is `plantuml.lark`; it also splits
the text. Syntax problems are part of the tree, so that all of them are reported at once.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from importlib.resources import files

from lark import Lark, Token, Tree
from lark.exceptions import UnexpectedInput

from tidings.core.source_text import refuse_unreadable
from tidings.core.suggest import closest
from tidings.objects.readers.plantuml_tree import (
    GROUP,
    MAX_LINE,
    Declaration,
    Diagram,
    Line,
    Member,
    Relationship,
    SyntaxProblem,
    Word,
    blank_comments,
    build_declaration,
    build_relationship,
    build_stereotypes,
    build_word,
    find_class_names,
    find_note_names,
    skip_presentation,
    split_lines,
    unquote_name,
)

MAX_LENGTH = 300_000
MAX_PROBLEMS = 100
"""Parsing stops after this many problems: the text is probably not a class diagram."""

CLASS_KEYWORDS = frozenset(("abstract", "class", "dataclass", "entity", "exception", "record", "struct"))
"""Declarations that have objects. Interfaces have none, and enumerations are types of attributes."""

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
_KEYWORDS = (
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
    """Parse a diagram."""
    refuse_unreadable(text, MAX_LENGTH)
    return _DiagramParser(text).parse()


class _DiagramParser:
    """State of the parser while it goes through the lines."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.plain = blank_comments(text)
        self.declarations: list[Declaration] = []
        self.members: list[Member] = []
        self.relationships: list[Relationship] = []
        self.problems: list[SyntaxProblem] = []
        self.others = set(find_note_names(self.plain))
        self.groups: list[Line] = []

    def parse(self) -> Diagram:
        lines = split_lines(self.plain)
        for line in skip_presentation(lines, find_class_names(self.plain)):
            if line.unended or len(line.text) > MAX_LINE:
                message = (
                    "this block is never closed"
                    if line.unended
                    else f"a line of more than {MAX_LINE:,} characters"
                )
                self._add_problem(line, message)
            elif _DECLARES.match(line.text):
                self._parse_declaration(line, lines)
            else:
                self._parse_line(line)
            if len(self.problems) >= MAX_PROBLEMS:
                break
        for group in self.groups:
            self._add_problem(group, "this group is never closed", "a line } after its contents")
        return Diagram(
            self.text,
            tuple(self.declarations),
            tuple(self.members),
            tuple(self.relationships),
            frozenset(self.others),
            tuple(self.problems),
        )

    def _parse_line(self, line: Line) -> None:
        member = _MEMBER_LINE.fullmatch(line.text)
        if group := GROUP.match(line.text):
            if not group[1]:
                self.groups.append(line)
        elif line.text == "}":
            if self.groups:
                self.groups.pop()
            else:
                self._add_problem(line, "this } closes nothing")
        elif line.text.startswith("!"):
            self._add_problem(line, "preprocessor directives are not supported", "the preprocessed diagram")
        elif _ASSOCIATION_CLASS.match(line.text):
            hint = "declare a class between the two, with an association to each"
            self._add_problem(line, "association classes are not supported", hint=hint)
        elif member:
            owner = unquote_name(member[1], line.start)
            self._parse_member(Line(member[2].strip(), line.start + member.start(2)), owner)
        else:
            self._parse_relationship(line)

    def _parse_declaration(self, line: Line, lines: Iterator[Line]) -> None:
        tree = self._parse_statement("declaration", line)
        if tree is None:
            if line.text.endswith("{"):
                list(_members_until_brace(lines, line))  # skip the body: its lines are not further problems
            return
        declaration = replace(build_declaration(tree, line.start), packages=self._enclosing_packages())
        body = next((each for each in tree.children if isinstance(each, Token) and each.type == "BODY"), None)
        members = list(_body_lines(body, line, lines)) if body is not None else []
        if members and members[-1].unended:
            self._add_problem(line, "this class is never closed", "a line } after its members")
            members.pop()
        if declaration.kind not in CLASS_KEYWORDS:
            self.others.add(declaration.name.text)
            return
        self.declarations.append(declaration)
        for member in members:
            self._parse_member(member, declaration.name)

    def _enclosing_packages(self) -> tuple[str, ...]:
        """Return the open packages: two packages may have classes of the same name."""
        return tuple(each.text for each in self.groups if _PACKAGE.match(each.text))

    def _parse_member(self, line: Line, owner: Word) -> None:
        text = line.text
        if not text or _SEPARATOR.match(text) or _METHOD.match(text) or _STATIC.search(text):
            return
        tree = self._parse_statement("member", line)
        if tree is not None:
            self._add_attribute(tree, line, owner)

    def _add_attribute(self, tree: Tree[Token], line: Line, owner: Word) -> None:
        """Add `String name`, `name : String`, `odd name : String`: without a colon the last word is the name."""
        tokens = [each for each in tree.children if isinstance(each, Token)]
        word_tokens = [each for each in tokens if each.type == "TYPED"]
        words = [build_word(each, line.start) for each in word_tokens]
        type_after_colon = next((str(each) for each in tokens if each.type == "TYPE"), None)
        name_words = words if type_after_colon else words[-1:]
        text = _ARRAY.sub("", " ".join(word.text for word in name_words))
        name = Word(text, name_words[0].start, name_words[-1].end)
        if not _NAME.fullmatch(text) and not word_tokens[-1].startswith('"'):
            self.problems.append(
                SyntaxProblem(replace(name, text=line.text), "not a name of an attribute", _FORMS["member"])
            )
            return
        type = type_after_colon or " ".join(word.text for word in words[:-1]) or None
        self.members.append(Member(owner, name, type, build_stereotypes(tree, line.start)))

    def _parse_relationship(self, line: Line) -> None:
        tree = self._parse_statement("relation", line)
        if tree is not None:
            self.relationships.append(build_relationship(tree, line.start))

    def _parse_statement(self, form: str, line: Line) -> Tree[Token] | None:
        try:
            return _parser().parse(line.text, start=form)
        except UnexpectedInput as unexpected:
            self._add_syntax_problem(form, line, unexpected)
            return None

    def _add_syntax_problem(self, form: str, line: Line, unexpected: UnexpectedInput) -> None:
        """Report the unexpected word; if the line has no arrow, the whole line, with a hint on its first word."""
        position = unexpected.pos_in_stream
        position = len(line.text) if position is None or position < 0 else min(position, len(line.text))
        unexpected_word = re.compile(r"\w+|\S|$").search(line.text, position)
        start, end = unexpected_word.span() if unexpected_word else (position, position)
        hint = None
        if form == "relation" and re.search(r"-|\.\.|==", line.text) is None:
            start, end = 0, len(line.text)
            first_word = re.match(r"\w*", line.text)
            hint = _suggest_keyword(first_word[0]) if first_word else None
        word = Word(line.text[start:end], line.start + start, line.start + max(end, start + 1))
        self.problems.append(SyntaxProblem(word, "syntax error", _FORMS[form], hint))

    def _add_problem(
        self, line: Line, message: str, accepted: str | None = None, hint: str | None = None
    ) -> None:
        word = Word(line.text, line.start, line.start + min(len(line.text), MAX_LINE))
        self.problems.append(SyntaxProblem(word, message, accepted, hint))


def _suggest_keyword(word: str) -> str | None:
    suggestion = closest(word.lower(), _KEYWORDS, 0.7)
    return f"did you mean '{suggestion}'?" if suggestion else None


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


def _body_lines(body: Token, line: Line, lines: Iterator[Line]) -> Iterator[Line]:
    """Yield the members of a class, on the same line or below; the last is `unended` if the brace is not closed."""
    body_text, start = body[1:], line.start + (body.start_pos or 0) + 1
    if body_text.count("}") > body_text.count("{"):
        inside = body_text[: body_text.rindex("}")]
        for part in re.finditer(r"[^;]+", inside):
            if part[0].strip():
                yield Line(part[0].strip(), start + part.start() + len(part[0]) - len(part[0].lstrip()))
        return
    if body_text.strip():
        yield Line(body_text.strip(), start + len(body_text) - len(body_text.lstrip()))
    yield from _members_until_brace(lines, line)


def _members_until_brace(lines: Iterator[Line], line: Line) -> Iterator[Line]:
    for member_line in lines:
        if member_line.text.count("}") > member_line.text.count("{"):
            preceding = member_line.text[: member_line.text.rindex("}")].strip()
            if preceding:
                yield Line(preceding, member_line.start)
            return
        yield member_line
    yield Line("", line.start, unended=True)
