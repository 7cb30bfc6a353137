"""Syntax tree of a PlantUML class diagram; words keep their positions in the text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import cast

from lark import Token, Tree

MAX_LINE = 2_000
"""Longer lines are rejected before regular expressions backtrack over them."""

_COMMENT = re.compile(r"/'.*?(?:'/|\Z)|^[ \t]*'[^\n]*", re.DOTALL | re.MULTILINE)

_NOTE = r"(?:floating\s+)?note\b"
_NAMED_NOTE = r"\s*\"[^\"]*\"\s*as\b"
_NOTE_HEAD = r"(?:\"[^\"]*\"|::|[^:])*+"
"""Position of a note. The colon before its text is not in quotes and not in `::`: `note right of A::"m(x : int)"`."""

PRESENTATION = re.compile(
    r"@(?:start|end)\w*\b|(?:hide|show|remove|restore|skinparam|skin|scale|caption|title|mainframe|header|footer|legend"
    r"|left\s+to\s+right|top\s+to\s+bottom|allow_?mixing|set\s+\w+|url\s+(?:of|for)|newpage|page|rotate|sprite|autonumber"
    r"|(?:left|right|center)\s+(?:header|footer))(?=\s|$)"
    rf"|!(?:theme|pragma|option|assume)\b|{_NOTE}(?:{_NAMED_NOTE}|{_NOTE_HEAD}:)",
    re.IGNORECASE,
)

BLOCKS: tuple[tuple[re.Pattern[str], re.Pattern[str]], ...] = tuple(
    (re.compile(begin, re.IGNORECASE), re.compile(end, re.IGNORECASE))
    for begin, end in (
        (r"skinparam\b.*\{\s*$", r"\}"),
        (r"<style>", r".*</style>"),
        (r"(?:left\s+|right\s+|center\s+)?header\s*$", r"end\s*header"),
        (r"(?:left\s+|right\s+|center\s+)?footer\s*$", r"end\s*footer"),
        (r"legend\b(?!.*:)", r"end\s*legend"),
        (r"title\s*$", r"end\s*title"),
        (r"sprite\b.*\{\s*$", r"\}"),
        (rf"{_NOTE}(?!{_NAMED_NOTE})(?=.*\{{\s*$){_NOTE_HEAD}$", r"\}"),
        (rf"{_NOTE}(?!{_NAMED_NOTE}){_NOTE_HEAD}$", r"end\s*note"),
    )
)
"""Begin and end of blocks of presentation."""

GROUP = re.compile(
    r"(?:package|namespace|together|rectangle|folder|frame|node|cloud|database|component|card|storage)\b[^{]*"
    r"(?:\{[^{}]*\}[^{]*)*\{\s*(\}?)\s*$",
    re.IGNORECASE,
)
"""Begin of a group of classes; braces that are closed on the same line belong to stereotypes."""

_FIRST = re.compile(r"\w*")
_CLASS_NAME = re.compile(r"(?:abstract|class|dataclass|entity|exception|record|struct)\s+(?:class\s+)?(\w+)")
_NOTE_NAME = re.compile(rf"{_NOTE}\s*(?:\"[^\"]*\"\s*)?\bas\s+(\w+)", re.IGNORECASE)
_SKINPARAM_DEPTH = re.compile(r"[{}]")


@dataclass(frozen=True, slots=True)
class Line:
    """A stripped line and its offset in the text; `unended` if it begins a block that is never closed."""

    text: str
    start: int
    unended: bool = False


def blank_comments(text: str) -> str:
    """Replace comments by blanks, so that all offsets stay the same."""
    return _COMMENT.sub(lambda comment: re.sub(r"[^\n]", " ", comment[0]), text)


def split_lines(text: str) -> Iterator[Line]:
    """Yield all lines that are not blank."""
    start = 0
    for row in text.split("\n"):
        stripped = row.strip()
        if stripped:
            yield Line(stripped, start + row.index(stripped))
        start += len(row) + 1


def find_note_names(text: str) -> frozenset[str]:
    """Find named notes: lines from these to classes have no meaning."""
    return _find_names(text, _NOTE_NAME)


def find_class_names(text: str) -> frozenset[str]:
    """Find the names after `class` and its synonyms."""
    return _find_names(text, _CLASS_NAME)


def _find_names(text: str, pattern: re.Pattern[str]) -> frozenset[str]:
    lines = (line.text for line in split_lines(text) if len(line.text) <= MAX_LINE)
    return frozenset(match[1] for line in lines if (match := pattern.match(line)))


def skip_presentation(lines: Iterator[Line], classes: frozenset[str]) -> Iterator[Line]:
    """Yield the lines that are not presentation. `page "*" -- "1" Site` is not, where `page` is a class.

    The caller consumes the members of a class from `lines` itself: there `title : String` is a member.
    """
    for line in lines:
        if len(line.text) > MAX_LINE or _FIRST.match(line.text)[0] in classes:  # type: ignore[index]  # it matches everything
            yield line
            continue
        end = next((end for begin, end in BLOCKS if begin.match(line.text)), None)
        if end is not None:
            if not _skip_block(lines, line, end):
                yield Line(line.text, line.start, unended=True)
        elif not PRESENTATION.match(line.text):
            yield line


def _skip_block(lines: Iterator[Line], line: Line, end: re.Pattern[str]) -> bool:
    """Skip a block, in which braces may be nested; return False if it is never closed."""
    if end.search(line.text):
        return end.pattern != r"\}" or "{" not in line.text
    depth = 1
    for block_line in lines:
        if end.pattern != r"\}":
            if end.match(block_line.text):
                return True
            continue
        depth += sum(1 if brace[0] == "{" else -1 for brace in _SKINPARAM_DEPTH.finditer(block_line.text))
        if depth <= 0:
            return True
    return False


@dataclass(frozen=True, slots=True)
class Word:
    """The characters from `start` to `end` of the text, without quotes."""

    text: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Stereotype:
    """`<<propagates {kinds = update link}>>`; `name` is empty for tagged values without a stereotype."""

    name: Word
    tags: tuple[tuple[Word, Word], ...] = ()


@dataclass(frozen=True, slots=True)
class Declaration:
    """`class Student <<subscriber>> extends Person`, with the enclosing packages."""

    kind: str
    name: Word
    stereotypes: tuple[Stereotype, ...] = ()
    extends: tuple[Word, ...] = ()
    implements: tuple[Word, ...] = ()
    packages: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Member:
    """`name : String`, in the braces of a class or after its name and a colon."""

    owner: Word
    name: Word
    type: str | None = None
    stereotypes: tuple[Stereotype, ...] = ()


@dataclass(frozen=True, slots=True)
class Relationship:
    """`Student "*" -- "1" Course : attends <<implicit>> >`."""

    left: Word
    right: Word
    arrow: Word
    left_text: Word | None = None
    right_text: Word | None = None
    label: Word | None = None
    reads: str = ""
    stereotypes: tuple[Stereotype, ...] = ()


@dataclass(frozen=True, slots=True)
class SyntaxProblem:
    """A part of the text that cannot be parsed."""

    at: Word
    what: str
    accepted: str | None = None
    hint: str | None = None


@dataclass(frozen=True, slots=True)
class Diagram:
    """All statements, in the order of the text; `others` are names without objects: notes, interfaces, enums."""

    text: str
    declarations: tuple[Declaration, ...]
    members: tuple[Member, ...]
    relationships: tuple[Relationship, ...]
    others: frozenset[str]
    problems: tuple[SyntaxProblem, ...]


def unquote_name(text: str, start: int) -> Word:
    """Remove the quotes of a name."""
    bare = text[1:-1] if text.startswith('"') else text
    return Word(bare, start, start + len(text))


def build_word(token: Token, start: int) -> Word:
    return unquote_name(str(token), start + (token.start_pos or 0))


def build_declaration(tree: Tree[Token], start: int) -> Declaration:
    children = tree.children
    kind = str(children[0]).split()[0].replace("static", "class")
    names = cast("Tree[Token]", children[1])
    name_tokens = [node for node in names.children if isinstance(node, Token)]
    name = next((node for node in name_tokens if node.type == "NAME"), name_tokens[0])
    parents = {"extends": list[Word](), "implements": list[Word]()}
    for node in tree.find_data("lineage"):
        tokens = [child for child in node.children if isinstance(child, Token) and child.type != "GENERIC"]
        parents[str(tokens[0])] += (build_word(token, start) for token in tokens[1:])
    return Declaration(
        kind,
        build_word(name, start),
        build_stereotypes(tree, start),
        tuple(parents["extends"]),
        tuple(parents["implements"]),
    )


def build_relationship(tree: Tree[Token], start: int) -> Relationship:
    tokens = [each for each in tree.children if isinstance(each, Token) and each.type not in ("COLOR", "TAG")]
    arrow_index = next(position for position, each in enumerate(tokens) if each.type == "ARROW")
    left, right = tokens[:arrow_index], tokens[arrow_index + 1 :]
    label = next(iter(tree.find_data("label")), None)
    words = next(iter(tree.find_data("words")), None)
    signs = {each.type: str(each) for each in (label.children if label else ()) if isinstance(each, Token)}
    return Relationship(
        build_word(left[0], start),
        build_word(right[-1], start),
        build_word(tokens[arrow_index], start),
        build_word(left[1], start) if len(left) > 1 else None,
        build_word(right[0], start) if len(right) > 1 else None,
        build_word(cast(Token, words.children[0]), start) if words else None,
        signs.get("READ_LEFT") or signs.get("READ_RIGHT") or "",
        build_stereotypes(label, start) if label else (),
    )


def build_stereotypes(tree: Tree[Token], start: int) -> tuple[Stereotype, ...]:
    """Build stereotypes in the order of the text; tagged values in braces belong to the one before them."""
    stereotypes: list[Stereotype] = []
    for child in tree.children:
        if not isinstance(child, Tree):
            continue
        if child.data in ("stereotype", "head_stereotype"):
            stereotypes += _split_stereotypes(child, start)
        elif child.data == "tags":
            last = stereotypes.pop() if stereotypes else Stereotype(Word("", start, start))
            stereotypes.append(Stereotype(last.name, (*last.tags, *_tags(child, start))))
    return tuple(stereotypes)


def _split_stereotypes(tree: Tree[Token], start: int) -> Iterator[Stereotype]:
    """Split `<<implicit, propagates {kinds = update}>>` into two stereotypes."""
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
    return tuple((build_word(key, start), build_word(value, start)) for key, value in pairs)
