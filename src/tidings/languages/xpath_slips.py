"""What is said about texts that are no XPath, or too much of it: usual slips by name, the rest by what was expected."""

from __future__ import annotations

from tidings.errors import Place, SyntaxProblem
from tidings.guessing import near
from tidings.languages import xpath_refusals as refusals
from tidings.languages.xpath_tokens import Tokens, is_name

_COMPARED = ("=", "!=", "<", "<=", ">", ">=")


def empty(text: str) -> SyntaxProblem:
    return SyntaxProblem(
        "the text is empty", place=Place.at(text, 0), accepted="a path such as //stock[price > 50]"
    )


def too_many(what: str, limit: int, place: Place) -> SyntaxProblem:
    return SyntaxProblem(f"too many {what}", place=place, accepted=f"at most {limit} in a subscription")


def too_deep(limit: int, place: Place) -> SyntaxProblem:
    accepted = f"at most {limit} levels of [...], (...) and not(...)"
    return SyntaxProblem("the text is nested too deeply", place=place, accepted=accepted)


def literal_alone(literal: str | float, tokens: Tokens, start: int, end: int) -> SyntaxProblem:
    """A literal that is compared with nothing; a number alone in brackets is a position."""
    before, behind, place = tokens.words[start - 1], tokens.words[end], tokens.place(start, end - 1)
    if not isinstance(literal, str) and before == "[" and behind == "]":
        return refusals.positions(place)
    if behind in ("", "and", "AND", "or", "OR", "]", ")", ","):
        bare = "leave the parentheses out" if before == "(" and behind == ")" else None
        return refusals.not_supported(
            "a literal alone is", place, bare or 'compare a path with it: name = "x"'
        )
    return unexpected(tokens, end, "an operator")


def behind_parentheses(tokens: Tokens, at: int) -> SyntaxProblem:
    """`(/a/b)[1]`, `(/a)/b`: what goes on behind parentheses."""
    if tokens.words[at] == "[" and tokens.words[at + 1].isdigit() and tokens.words[at + 2] == "]":
        return refusals.positions(tokens.place(at + 1))
    return refusals.behind_parentheses(tokens.place(at))


def not_closed(tokens: Tokens, opened: int, at: int, closing: str) -> SyntaxProblem:
    """Where a text ends too early, the place to show is the bracket that was opened."""
    if tokens.words[at]:
        return unexpected(tokens, at, f"'{closing}'")
    what = f"this '{tokens.words[opened]}' is never closed"
    return SyntaxProblem(what, place=tokens.place(opened), accepted=f"a '{closing}' after it")


_PAIRS = {"==": "=", "=<": "<=", "=>": ">=", "<>": "!=", "||": "or", "=!": "!="}


def expected(wanted: str, tokens: Tokens, at: int, hint: str | None = None) -> SyntaxProblem:
    """Something else was expected at a token; two that are one in other languages are named."""
    before, word = tokens.words[at - 1] if at else "", tokens.words[at]
    meant = _PAIRS.get(before + word) if tokens.touch(at) else None
    if meant:
        return SyntaxProblem(f"'{before}{word}' is written '{meant}'", place=tokens.place(at - 1, at))
    after = f" after {_quoted(before)}" if before else ""
    return SyntaxProblem(f"expected {wanted}{after}", place=tokens.place(at), hint=hint)


def no_operand(tokens: Tokens, at: int) -> SyntaxProblem:
    """A token where a path, a step of one or a value should be."""
    word, before = tokens.words[at], tokens.words[at - 1] if at else ""
    if word == "..":
        return refusals.parent(tokens.place(at))
    if word == "$":
        return refusals.variable(tokens.place(at, at + 1 if is_name(tokens.words[at + 1]) else at))
    if word in ("+", "-"):
        return refusals.arithmetic(tokens.place(at))
    return expected(_wanted(before), tokens, at)


def _wanted(before: str) -> str:
    if before in ("/", "//"):
        return "a name, '*', '@', text() or '.'"
    if before in ("@", "::"):
        return "a name or '*'"
    return "a value or a path" if before in _COMPARED else "a path"


def unexpected(tokens: Tokens, at: int, wanted: str) -> SyntaxProblem:
    """A token behind a whole comparison or path, where only `and`, `or` or `wanted` could be."""
    word, place = tokens.words[at], tokens.place(at)
    if word in ("+", "-", "*", "div", "mod"):
        return refusals.arithmetic(place)
    if word == "|" and tokens.words[at + 1] != "|":
        return refusals.union(place)
    if word == "|":
        return SyntaxProblem("'||' is written 'or'", place=tokens.place(at, at + 1))
    if word in _COMPARED:
        return refusals.comparison_goes_on(place)
    if word in ("]", ")") and wanted == "the end":
        return SyntaxProblem(
            f"this '{word}' closes nothing", place=place, hint="remove it, or open one before"
        )
    return expected(f"'and', 'or' or {wanted}", tokens, at, _slip(tokens, at))


def _slip(tokens: Tokens, at: int) -> str | None:
    word, before = tokens.words[at], tokens.words[at - 1]
    if before.lower() == "not":
        return "not has parentheses: not(...)"
    if before[:1].isdigit() and word[:1] in ("e", "E") and tokens.touch(at):
        return "numbers have no exponent: 1000 instead of 1e3"
    if word[:1].isdigit() or word[:1] in ("'", '"'):
        return "is an operator missing? = != < <= > >="
    meant = near(word.lower(), ("and", "or")) if is_name(word) else None
    return f"did you mean '{meant}'?" if meant else None


def _quoted(word: str) -> str:
    return word if word[0] in "\"'" else f"'{word}'"
