"""From the trees that the parser makes of lines to what they say (`plantuml_tree`)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import cast

from lark import Token, Tree

from tidings.languages.plantuml_tree import Declared, Related, Stereotype, Word


def plain(text: str, start: int) -> Word:
    """A name without its quotes."""
    bare = text[1:-1] if text.startswith('"') else text
    return Word(bare, start, start + len(text))


def word_of(token: Token, start: int) -> Word:
    return plain(str(token), start + (token.start_pos or 0))


def declared_of(tree: Tree[Token], start: int) -> Declared:
    children = tree.children
    kind = str(children[0]).split()[0].replace("static", "class")
    names = cast("Tree[Token]", children[1])
    named = [each for each in names.children if isinstance(each, Token)]
    name = next((each for each in named if each.type == "NAME"), named[0])
    above = {"extends": list[Word](), "implements": list[Word]()}
    for each in tree.find_data("lineage"):
        tokens = [child for child in each.children if isinstance(child, Token) and child.type != "GENERIC"]
        above[str(tokens[0])] += (word_of(token, start) for token in tokens[1:])
    return Declared(
        kind,
        word_of(name, start),
        stereotypes_of(tree, start),
        tuple(above["extends"]),
        tuple(above["implements"]),
    )


def related_of(tree: Tree[Token], start: int) -> Related:
    tokens = [each for each in tree.children if isinstance(each, Token) and each.type not in ("COLOR", "TAG")]
    at = next(place for place, each in enumerate(tokens) if each.type == "ARROW")
    before, after = tokens[:at], tokens[at + 1 :]
    label = next(iter(tree.find_data("label")), None)
    words = next(iter(tree.find_data("words")), None)
    signs = {each.type: str(each) for each in (label.children if label else ()) if isinstance(each, Token)}
    return Related(
        word_of(before[0], start),
        word_of(after[-1], start),
        word_of(tokens[at], start),
        word_of(before[1], start) if len(before) > 1 else None,
        word_of(after[0], start) if len(after) > 1 else None,
        word_of(cast(Token, words.children[0]), start) if words else None,
        signs.get("READ_LEFT") or signs.get("READ_RIGHT") or "",
        stereotypes_of(label, start) if label else (),
    )


def stereotypes_of(tree: Tree[Token], start: int) -> tuple[Stereotype, ...]:
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
    return tuple((word_of(key, start), word_of(value, start)) for key, value in pairs)
