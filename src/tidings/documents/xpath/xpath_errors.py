"""What is said about XPath that subscriptions do not have, and about texts that are no XPath.

Each refusal underlines its place, says what is supported, and hints at how to ask the same another way where there is
one.
"""

from __future__ import annotations

from tidings.core.source_text import Tokens
from tidings.core.suggest import closest
from tidings.documents.model import NodeKind
from tidings.documents.xpath.xpath_tokens import is_name
from tidings.documents.xpath.xpath_tree import Path
from tidings.errors import CheckProblem, NotSupported, Place, SyntaxProblem

SUPPORTED = "names, *, @attributes, text(), comparisons, contains(), starts-with(), and / or / not()"


def not_supported(what: str, place: Place, hint: str | None = None) -> NotSupported:
    """`what` with its verb: 'positions are', 'the function count() is'."""
    said = f"{what} not supported in subscriptions"
    return NotSupported(said, place=place, accepted=SUPPORTED, hint=hint)


def positions(place: Place) -> NotSupported:
    hint = "say what the element has instead: [name = 'value']"
    return not_supported("positions are", place, hint)


_KNOWN = ("contains", "starts-with", "not", "text")
_INSTEAD = {
    "count": "a path alone asks whether something is there: [item]",
    "boolean": "a path alone asks whether something is there: [item]",
    "string": "a path is compared by its string value: [name = 'value']",
    "normalize-space": "a path is compared by its string value: [name = 'value']",
    "number": "a path is compared with a number as a number: [price > 50]",
    "true": "leave it out: a predicate is true or false by itself",
    "false": "not(...) asks that something is not so",
    "name": "write the name as a step: /a/name or //name",
    "local-name": "write the name as a step; p:name is a name of a namespace",
    "namespace-uri": 'write declare namespace p = "..."; before, then p:* or p:name',
    "ends-with": "contains() and starts-with() look inside values",
    "matches": "contains() and starts-with() look for plain characters, without wildcards",
    "substring": "contains() and starts-with() look inside values",
    "exists": "a path alone asks whether something is there: [item]",
    "empty": "not(item) asks that nothing is there",
}


def function(name: str, place: Place) -> NotSupported:
    if name in ("position", "last"):
        return positions(place)
    hint = _INSTEAD.get(name)
    if hint is None:
        meant = closest(name.lower(), _KNOWN)
        hint = f"did you mean {meant}()?" if meant else "functions are not(), contains() and starts-with()"
    return not_supported(f"the function {name}() is", place, hint)


_NODE_TESTS = {
    "node": "* is any element, @* any attribute, text() any text",
    "comment": "comments are not part of what is matched",
    "processing-instruction": "processing instructions are not part of what is matched",
}
NODE_TESTS = frozenset(_NODE_TESTS)


def node_test(name: str, place: Place) -> NotSupported:
    return not_supported(f"{name}() is", place, _NODE_TESTS[name])


_OUTER = "begin at the outer element: a[b]//c instead of //c/ancestor::a[b]"
_BESIDE = "ask both of their parent: a[b and c]"
_AXES = {
    "parent": "ask the parent in a predicate: a[b] instead of b/parent::a",
    "ancestor": _OUTER,
    "ancestor-or-self": _OUTER,
    "descendant-or-self": "// leads to everything below",
    "following": _BESIDE,
    "preceding": _BESIDE,
    "following-sibling": _BESIDE,
    "preceding-sibling": _BESIDE,
    "self": "self:: is only for self::node(), which is '.'",
    "namespace": "declared prefixes stand in names: p:name",
}
AXES = ("child", "descendant", "attribute")


def axis(name: str, place: Place) -> SyntaxProblem:
    if name in _AXES:
        return not_supported(f"the axis {name}:: is", place, _AXES[name])
    meant = closest(name, AXES)
    hint = f"did you mean {meant}::?" if meant else None
    return SyntaxProblem(
        f"there is no axis {name}::", place=place, accepted="child::, descendant::, attribute::", hint=hint
    )


def parent(place: Place) -> NotSupported:
    return not_supported(
        "the parent step '..' is", place, "ask the parent in a predicate: a[b] instead of b/.."
    )


def document(place: Place) -> NotSupported:
    return not_supported(
        "the bare document is", place, "/* is the document's element, //name an element anywhere"
    )


def dot_behind_slashes(place: Place) -> NotSupported:
    hint = "//* is any element, //text() any text, //@* any attribute"
    return not_supported("'.' behind '//' is", place, hint)


def predicate_of_dot(place: Place) -> NotSupported:
    return not_supported(
        "a predicate of '.' is", place, "write it into the predicate around it, joined with and"
    )


def behind_parentheses(place: Place) -> NotSupported:
    return not_supported("a path that goes on behind parentheses is", place, "leave the parentheses out")


def step_behind(kind: NodeKind, place: Place) -> NotSupported:
    shown = "text()" if kind is NodeKind.TEXT else "an attribute"
    return not_supported(f"a step behind {shown} is", place, "texts and attributes have nothing below them")


def variable(place: Place) -> NotSupported:
    return not_supported("variables are", place, "write the value itself")


def arithmetic(place: Place) -> NotSupported:
    return not_supported("arithmetic is", place, "compare a path with a number: price > 50")


def union(place: Place) -> NotSupported:
    return not_supported("unions are", place, "join whole predicates with or: /a/b or /a/c")


def no_comparison(left: object, right: object, place: Place) -> NotSupported:
    """Two operands of which not exactly one is a path and the other a literal."""
    hint = 'compare a path with a literal: price > 50, name = "x"'
    if isinstance(left, Path) and isinstance(right, Path):
        return not_supported("comparing two paths is", place, hint)
    if isinstance(left, str | float) and isinstance(right, str | float):
        return not_supported("comparing two literals is", place, hint)
    return not_supported("comparing what is true or false is", place, "leave it out, or put not(...) around")


def comparison_goes_on(place: Place) -> NotSupported:
    return not_supported("comparing a comparison is", place, "join two comparisons: 1 < a and a < 5")


def argument(function: str, place: Place, hint: str | None = None) -> NotSupported:
    said = f"{function}() of anything but a path and a string is"
    return not_supported(said, place, hint or f'write {function}(path, "string")')


def empty_literal(function: str, place: Place) -> CheckProblem:
    what = f"{function}() with an empty string always holds"
    return CheckProblem(what, place=place, accepted="a string with something in it")


def never_a_number(place: Place) -> CheckProblem:
    what = "an order is one of numbers, and this string is none: it can never hold"
    hint = "strings have = and != only"
    return CheckProblem(what, place=place, accepted='numbers such as 50, -2.5 or "50"', hint=hint)


def number_too_large(place: Place) -> SyntaxProblem:
    return SyntaxProblem("the number is too large", place=place, accepted="numbers a 64-bit double can hold")


def unknown_prefix(prefix: str, known: list[str], place: Place) -> CheckProblem:
    meant = closest(prefix, known)
    hint = (
        f"did you mean '{meant}'?" if meant else f'write declare namespace {prefix} = "..."; before the path'
    )
    return CheckProblem(f"the prefix '{prefix}' is not declared", place=place, hint=hint)


def bad_prefix(prefix: str, place: Place) -> CheckProblem:
    return CheckProblem(
        f"the prefix '{prefix}' cannot be declared", place=place, accepted="prefixes other than xml and xmlns"
    )


def declared_twice(prefix: str, place: Place) -> CheckProblem:
    return CheckProblem(f"the prefix '{prefix}' is declared twice", place=place)


def bad_namespace(place: Place) -> CheckProblem:
    hint = "names without a prefix are in no namespace"
    return CheckProblem(
        "this is no namespace", place=place, accepted="a URI, not empty, without { and }", hint=hint
    )


# What is said about texts that are no XPath, or too much of it: usual slips by name, the rest by what was expected.


_COMPARED = ("=", "!=", "<", "<=", ">", ">=")


def empty_text(text: str) -> SyntaxProblem:
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
        return positions(place)
    if behind in ("", "and", "AND", "or", "OR", "]", ")", ","):
        bare = "leave the parentheses out" if before == "(" and behind == ")" else None
        return not_supported("a literal alone is", place, bare or 'compare a path with it: name = "x"')
    return unexpected(tokens, end, "an operator")


def unexpected_after_parentheses(tokens: Tokens, at: int) -> SyntaxProblem:
    """`(/a/b)[1]`, `(/a)/b`: what goes on behind parentheses."""
    if tokens.words[at] == "[" and tokens.words[at + 1].isdigit() and tokens.words[at + 2] == "]":
        return positions(tokens.place(at + 1))
    return behind_parentheses(tokens.place(at))


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
        return parent(tokens.place(at))
    if word == "$":
        return variable(tokens.place(at, at + 1 if is_name(tokens.words[at + 1]) else at))
    if word in ("+", "-"):
        return arithmetic(tokens.place(at))
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
        return arithmetic(place)
    if word == "|" and tokens.words[at + 1] != "|":
        return union(place)
    if word == "|":
        return SyntaxProblem("'||' is written 'or'", place=tokens.place(at, at + 1))
    if word in _COMPARED:
        return comparison_goes_on(place)
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
    meant = closest(word.lower(), ("and", "or")) if is_name(word) else None
    return f"did you mean '{meant}'?" if meant else None


def _quoted(word: str) -> str:
    return word if word[0] in "\"'" else f"'{word}'"
