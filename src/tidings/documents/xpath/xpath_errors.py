"""Errors for XPath syntax that subscriptions do not support, and for texts that are not XPath.

Each error underlines its place, states the supported syntax, and suggests an equivalent if one exists.
"""

from __future__ import annotations

from tidings.core.source_text import Tokens
from tidings.core.suggest import closest
from tidings.documents.model import NodeKind
from tidings.documents.xpath.xpath_tokens import is_name
from tidings.documents.xpath.xpath_tree import Path
from tidings.errors import CheckProblem, NotSupported, Place, SyntaxProblem

SUPPORTED = "names, *, @attributes, text(), comparisons, contains(), starts-with(), and / or / not()"


def not_supported(construct: str, place: Place, hint: str | None = None) -> NotSupported:
    """Make the error; `what` includes its verb: 'positions are', 'the function count() is'."""
    message = f"{construct} not supported in subscriptions"
    return NotSupported(message, place=place, accepted=SUPPORTED, hint=hint)


def positions(place: Place) -> NotSupported:
    hint = "describe the element instead: [name = 'value']"
    return not_supported("positions are", place, hint)


_FUNCTIONS = ("contains", "starts-with", "not", "text")
_INSTEAD = {
    "count": "a path alone tests that a node exists: [item]",
    "boolean": "a path alone tests that a node exists: [item]",
    "string": "a path compares by its string value: [name = 'value']",
    "normalize-space": "a path compares by its string value: [name = 'value']",
    "number": "a path compares with a number as a number: [price > 50]",
    "true": "remove it: a predicate is already true or false",
    "false": "use not(...) to negate a predicate",
    "name": "write the name as a step: /a/name or //name",
    "local-name": "write the name as a step; p:name is a name in a namespace",
    "namespace-uri": 'declare namespace p = "..."; first, then write p:* or p:name',
    "ends-with": "contains() and starts-with() look inside values",
    "matches": "contains() and starts-with() look for plain characters, without wildcards",
    "substring": "contains() and starts-with() look inside values",
    "exists": "a path alone tests that a node exists: [item]",
    "empty": "not(item) tests that no node exists",
}


def function(name: str, place: Place) -> NotSupported:
    if name in ("position", "last"):
        return positions(place)
    hint = _INSTEAD.get(name)
    if hint is None:
        suggestion = closest(name.lower(), _FUNCTIONS)
        hint = (
            f"did you mean {suggestion}()?"
            if suggestion
            else "functions are not(), contains() and starts-with()"
        )
    return not_supported(f"the function {name}() is", place, hint)


_NODE_TESTS = {
    "node": "* is any element, @* any attribute, text() any text",
    "comment": "comments are not matched",
    "processing-instruction": "processing instructions are not matched",
}
NODE_TESTS = frozenset(_NODE_TESTS)


def node_test(name: str, place: Place) -> NotSupported:
    return not_supported(f"{name}() is", place, _NODE_TESTS[name])


_OUTER = "start at the outer element: a[b]//c instead of //c/ancestor::a[b]"
_BESIDE = "test both in a predicate of their parent: a[b and c]"
_AXES = {
    "parent": "use a predicate of the parent: a[b] instead of b/parent::a",
    "ancestor": _OUTER,
    "ancestor-or-self": _OUTER,
    "descendant-or-self": "use // for all descendants",
    "following": _BESIDE,
    "preceding": _BESIDE,
    "following-sibling": _BESIDE,
    "preceding-sibling": _BESIDE,
    "self": "self:: is only supported in self::node(), which is '.'",
    "namespace": "use declared prefixes in names: p:name",
}
AXES = ("child", "descendant", "attribute")


def axis(name: str, place: Place) -> SyntaxProblem:
    if name in _AXES:
        return not_supported(f"the axis {name}:: is", place, _AXES[name])
    suggestion = closest(name, AXES)
    hint = f"did you mean {suggestion}::?" if suggestion else None
    return SyntaxProblem(
        f"unknown axis {name}::", place=place, accepted="child::, descendant::, attribute::", hint=hint
    )


def parent(place: Place) -> NotSupported:
    return not_supported(
        "the parent step '..' is", place, "use a predicate of the parent: a[b] instead of b/.."
    )


def document(place: Place) -> NotSupported:
    return not_supported(
        "the document node is", place, "/* is the document element, //name an element anywhere"
    )


def dot_after_slashes(place: Place) -> NotSupported:
    hint = "//* is any element, //text() any text, //@* any attribute"
    return not_supported("'.' after '//' is", place, hint)


def predicate_of_dot(place: Place) -> NotSupported:
    return not_supported("a predicate of '.' is", place, "join it with 'and' to the predicate around it")


def after_parentheses(place: Place) -> NotSupported:
    return not_supported("a path that continues after parentheses is", place, "remove the parentheses")


def step_after(kind: NodeKind, place: Place) -> NotSupported:
    shown = "text()" if kind is NodeKind.TEXT else "an attribute"
    return not_supported(f"a step after {shown} is", place, "texts and attributes have no children")


def variable(place: Place) -> NotSupported:
    return not_supported("variables are", place, "write the value")


def arithmetic(place: Place) -> NotSupported:
    return not_supported("arithmetic is", place, "compare a path with a number: price > 50")


def union(place: Place) -> NotSupported:
    return not_supported("unions are", place, "join whole predicates with or: /a/b or /a/c")


def no_comparison(left: object, right: object, place: Place) -> NotSupported:
    """Make the error for two operands that are not a path and a literal."""
    hint = 'compare a path with a literal: price > 50, name = "x"'
    if isinstance(left, Path) and isinstance(right, Path):
        return not_supported("comparing two paths is", place, hint)
    if isinstance(left, str | float) and isinstance(right, str | float):
        return not_supported("comparing two literals is", place, hint)
    return not_supported("comparing a condition is", place, "remove the comparison, or use not(...)")


def chained_comparison(place: Place) -> NotSupported:
    return not_supported("a chained comparison is", place, "join two comparisons: 1 < a and a < 5")


def argument(function: str, place: Place, hint: str | None = None) -> NotSupported:
    construct = f"{function}() with arguments other than a path and a string is"
    return not_supported(construct, place, hint or f'write {function}(path, "string")')


def empty_literal(function: str, place: Place) -> CheckProblem:
    message = f"{function}() with an empty string always holds"
    return CheckProblem(message, place=place, accepted="a non-empty string")


def never_a_number(place: Place) -> CheckProblem:
    message = "only numbers have an order, and this string is not a number: it can never match"
    hint = "strings can only be compared with = and !="
    return CheckProblem(message, place=place, accepted='numbers such as 50, -2.5 or "50"', hint=hint)


def number_too_large(place: Place) -> SyntaxProblem:
    return SyntaxProblem("the number is too large", place=place, accepted="numbers a 64-bit double can hold")


def unknown_prefix(prefix: str, prefixes: list[str], place: Place) -> CheckProblem:
    suggestion = closest(prefix, prefixes)
    hint = (
        f"did you mean '{suggestion}'?"
        if suggestion
        else f'add declare namespace {prefix} = "..."; before the path'
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
        "invalid namespace", place=place, accepted="a non-empty URI without { and }", hint=hint
    )


# Syntax errors: common mistakes by name, the others by the expected input.

_COMPARED = ("=", "!=", "<", "<=", ">", ">=")


def empty_text(text: str) -> SyntaxProblem:
    return SyntaxProblem(
        "the text is empty", place=Place.at(text, 0), accepted="a path such as //stock[price > 50]"
    )


def too_many(plural: str, limit: int, place: Place) -> SyntaxProblem:
    return SyntaxProblem(f"too many {plural}", place=place, accepted=f"at most {limit} in a subscription")


def too_deep(limit: int, place: Place) -> SyntaxProblem:
    accepted = f"at most {limit} levels of [...], (...) and not(...)"
    return SyntaxProblem("the text is nested too deeply", place=place, accepted=accepted)


def literal_alone(literal: str | float, tokens: Tokens, start: int, end: int) -> SyntaxProblem:
    """Make the error for a literal without a comparison; a number alone in brackets is a position."""
    previous, behind, place = tokens.words[start - 1], tokens.words[end], tokens.place(start, end - 1)
    if not isinstance(literal, str) and previous == "[" and behind == "]":
        return positions(place)
    if behind in ("", "and", "AND", "or", "OR", "]", ")", ","):
        bare = "remove the parentheses" if previous == "(" and behind == ")" else None
        return not_supported("a literal alone is", place, bare or 'compare a path with it: name = "x"')
    return unexpected(tokens, end, "an operator")


def unexpected_after_parentheses(tokens: Tokens, index: int) -> SyntaxProblem:
    """Make the error for a path that continues after parentheses: `(/a/b)[1]`, `(/a)/b`."""
    if tokens.words[index] == "[" and tokens.words[index + 1].isdigit() and tokens.words[index + 2] == "]":
        return positions(tokens.place(index + 1))
    return after_parentheses(tokens.place(index))


def not_closed(tokens: Tokens, opened: int, index: int, closing: str) -> SyntaxProblem:
    """Make the error for a missing bracket; at the end of the text, it points at the one that was opened."""
    if tokens.words[index]:
        return unexpected(tokens, index, f"'{closing}'")
    message = f"this '{tokens.words[opened]}' is never closed"
    return SyntaxProblem(message, place=tokens.place(opened), accepted=f"a '{closing}' after it")


_PAIRS = {"==": "=", "=<": "<=", "=>": ">=", "<>": "!=", "||": "or", "=!": "!="}


def expected(accepted: str, tokens: Tokens, index: int, hint: str | None = None) -> SyntaxProblem:
    """Make the error for an unexpected token; two tokens that are one operator in other languages are named."""
    previous, word = tokens.words[index - 1] if index else "", tokens.words[index]
    suggestion = _PAIRS.get(previous + word) if tokens.touch(index) else None
    if suggestion:
        return SyntaxProblem(
            f"write '{suggestion}' instead of '{previous}{word}'", place=tokens.place(index - 1, index)
        )
    context = f" after {_quote_word(previous)}" if previous else ""
    return SyntaxProblem(f"expected {accepted}{context}", place=tokens.place(index), hint=hint)


def no_operand(tokens: Tokens, index: int) -> SyntaxProblem:
    """Make the error for a token in place of a path, a step or a value."""
    word, previous = tokens.words[index], tokens.words[index - 1] if index else ""
    if word == "..":
        return parent(tokens.place(index))
    if word == "$":
        return variable(tokens.place(index, index + 1 if is_name(tokens.words[index + 1]) else index))
    if word in ("+", "-"):
        return arithmetic(tokens.place(index))
    return expected(_expected_operand(previous), tokens, index)


def _expected_operand(previous: str) -> str:
    if previous in ("/", "//"):
        return "a name, '*', '@', text() or '.'"
    if previous in ("@", "::"):
        return "a name or '*'"
    return "a value or a path" if previous in _COMPARED else "a path"


def unexpected(tokens: Tokens, index: int, accepted: str) -> SyntaxProblem:
    """Make the error for a token after a complete comparison or path, where only `and`, `or` or `wanted` fits."""
    word, place = tokens.words[index], tokens.place(index)
    if word in ("+", "-", "*", "div", "mod"):
        return arithmetic(place)
    if word == "|" and tokens.words[index + 1] != "|":
        return union(place)
    if word == "|":
        return SyntaxProblem("write 'or' instead of '||'", place=tokens.place(index, index + 1))
    if word in _COMPARED:
        return chained_comparison(place)
    if word in ("]", ")") and accepted == "the end":
        return SyntaxProblem(f"unmatched '{word}'", place=place, hint="remove it, or open one before it")
    return expected(f"'and', 'or' or {accepted}", tokens, index, _mistake_hint(tokens, index))


def _mistake_hint(tokens: Tokens, index: int) -> str | None:
    word, previous = tokens.words[index], tokens.words[index - 1]
    if previous.lower() == "not":
        return "write not(...) with parentheses"
    if previous[:1].isdigit() and word[:1] in ("e", "E") and tokens.touch(index):
        return "exponents are not supported: write 1000 instead of 1e3"
    if word[:1].isdigit() or word[:1] in ("'", '"'):
        return "is an operator missing? = != < <= > >="
    suggestion = closest(word.lower(), ("and", "or")) if is_name(word) else None
    return f"did you mean '{suggestion}'?" if suggestion else None


def _quote_word(word: str) -> str:
    return word if word[0] in "\"'" else f"'{word}'"
