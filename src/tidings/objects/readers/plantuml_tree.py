"""What a class diagram of PlantUML says, line by line; words know where they stand in its text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import cast

from lark import Token, Tree


@dataclass(frozen=True, slots=True)
class Word:
    """The characters `start` to `end` of the text, without quotes."""

    text: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Stereotype:
    """`<<propagates {kinds = update link}>>`; `name` is empty for tagged values that stand alone."""

    name: Word
    tags: tuple[tuple[Word, Word], ...] = ()


@dataclass(frozen=True, slots=True)
class Declaration:
    """`class Student <<subscriber>> extends Person`, in packages."""

    kind: str
    name: Word
    stereotypes: tuple[Stereotype, ...] = ()
    extends: tuple[Word, ...] = ()
    implements: tuple[Word, ...] = ()
    within: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Member:
    """`name : String`, in the braces of a class or behind its name and a colon."""

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
    left_said: Word | None = None
    right_said: Word | None = None
    label: Word | None = None
    reads: str = ""
    stereotypes: tuple[Stereotype, ...] = ()


@dataclass(frozen=True, slots=True)
class SyntaxProblem:
    """Something in the text that is not understood."""

    at: Word
    what: str
    accepted: str | None = None
    hint: str | None = None


@dataclass(frozen=True, slots=True)
class Diagram:
    """All of it, in the order of the text; `others` are names of what has no objects: notes, interfaces."""

    text: str
    declared: tuple[Declaration, ...]
    members: tuple[Member, ...]
    related: tuple[Relationship, ...]
    others: frozenset[str]
    puzzles: tuple[SyntaxProblem, ...]


# From the trees that the parser makes of lines to what they say (`plantuml_tree`).


def unquote_name(text: str, start: int) -> Word:
    """A name without its quotes."""
    bare = text[1:-1] if text.startswith('"') else text
    return Word(bare, start, start + len(text))


def build_word(token: Token, start: int) -> Word:
    return unquote_name(str(token), start + (token.start_pos or 0))


def build_declaration(tree: Tree[Token], start: int) -> Declaration:
    children = tree.children
    kind = str(children[0]).split()[0].replace("static", "class")
    names = cast("Tree[Token]", children[1])
    named = [each for each in names.children if isinstance(each, Token)]
    name = next((each for each in named if each.type == "NAME"), named[0])
    above = {"extends": list[Word](), "implements": list[Word]()}
    for each in tree.find_data("lineage"):
        tokens = [child for child in each.children if isinstance(child, Token) and child.type != "GENERIC"]
        above[str(tokens[0])] += (build_word(token, start) for token in tokens[1:])
    return Declaration(
        kind,
        build_word(name, start),
        build_stereotypes(tree, start),
        tuple(above["extends"]),
        tuple(above["implements"]),
    )


def build_relationship(tree: Tree[Token], start: int) -> Relationship:
    tokens = [each for each in tree.children if isinstance(each, Token) and each.type not in ("COLOR", "TAG")]
    at = next(place for place, each in enumerate(tokens) if each.type == "ARROW")
    before, after = tokens[:at], tokens[at + 1 :]
    label = next(iter(tree.find_data("label")), None)
    words = next(iter(tree.find_data("words")), None)
    signs = {each.type: str(each) for each in (label.children if label else ()) if isinstance(each, Token)}
    return Relationship(
        build_word(before[0], start),
        build_word(after[-1], start),
        build_word(tokens[at], start),
        build_word(before[1], start) if len(before) > 1 else None,
        build_word(after[0], start) if len(after) > 1 else None,
        build_word(cast(Token, words.children[0]), start) if words else None,
        signs.get("READ_LEFT") or signs.get("READ_RIGHT") or "",
        build_stereotypes(label, start) if label else (),
    )


def build_stereotypes(tree: Tree[Token], start: int) -> tuple[Stereotype, ...]:
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
    return tuple((build_word(key, start), build_word(value, start)) for key, value in pairs)
