"""Errors of graph subscriptions: SPARQL syntax that is not supported, and common mistakes.

Each error underlines its place and states the accepted syntax, or suggests an equivalent.
"""

from __future__ import annotations

from collections.abc import Iterable

from tidings.core.source_text import Tokens
from tidings.core.suggest import closest
from tidings.errors import CheckProblem, NotSupported, Place, SyntaxProblem
from tidings.values import BETWEEN_MICROSECONDS, WHOLE_MICROSECONDS

SUPPORTED = "edges, and comparisons of a variable: = != < <= > >= contains, starts with, in"
SUPPORTED_SPARQL = "PREFIX, SELECT, triple patterns, FILTER with = != < <= > >= IN CONTAINS STRSTARTS &&"


def not_supported(
    construct: str, place: Place, hint: str | None = None, *, sparql: bool = True
) -> NotSupported:
    """Make the error; `what` includes its verb: 'OPTIONAL is', 'property paths are'."""
    accepted = SUPPORTED_SPARQL if sparql else SUPPORTED
    return NotSupported(
        f"{construct} not supported in subscriptions", place=place, accepted=accepted, hint=hint
    )


_EITHER = "make a subscription for each side"
_WHOLE = "a subscription is evaluated on each published graph separately"
_ALL = "every match is notified: there is nothing to order or limit"
_SELECTED = "write SELECT and the variables that a notification should show"
_OUTSIDE: dict[str, str] = {
    "OPTIONAL": "make a subscription without that part",
    "UNION": _EITHER,
    "MINUS": "ask for edges that must exist",
    "EXISTS": "write its edges beside the others",
    "NOT": "!= asks for another value",
    "NOT IN": "ask != for each value",
    "NOT EXISTS": "a subscription cannot ask for missing edges: ask for edges that must exist",
    "SERVICE": _WHOLE,
    "GRAPH": _WHOLE,
    "FROM": _WHOLE,
    "BIND": "compare the variable itself",
    "VALUES": "write ?x IN (...) in a FILTER",
    "ORDER": _ALL,
    "LIMIT": _ALL,
    "OFFSET": _ALL,
    "GROUP": _ALL,
    "HAVING": _ALL,
    "CONSTRUCT": _SELECTED,
    "ASK": _SELECTED,
    "DESCRIBE": _SELECTED,
    "OR": _EITHER,
    "INSERT": "subscriptions do not change anything",
    "DELETE": "subscriptions do not change anything",
}
OUTSIDE = frozenset(_OUTSIDE)
_TWO_WORDS = {"ORDER": "ORDER BY", "GROUP": "GROUP BY"}


def outside(word: str, place: Place, *, sparql: bool = True) -> NotSupported:
    word = word.upper()
    return not_supported(f"{_TWO_WORDS.get(word, word)} is", place, _OUTSIDE[word], sparql=sparql)


_AGGREGATES = ("COUNT", "SUM", "MIN", "MAX", "AVG", "SAMPLE", "GROUP_CONCAT")
_INSTEAD = {
    "STRENDS": "CONTAINS and STRSTARTS look inside strings",
    "REGEX": "CONTAINS and STRSTARTS look for plain characters, without wildcards",
    "STR": "write CONTAINS(STR(?x), ...) or compare the variable itself",
    "LANG": "compare with a string that has a language: ?x = 'oak'@en",
    "LANGMATCHES": "compare with a string that has a language: ?x = 'oak'@en",
    "DATATYPE": "compare with a value of that datatype",
    "SAMETERM": "an IRI is compared as a term: ?x = ex:oak",
    "BOUND": "every variable of a subscription is bound",
    "YEAR": 'compare the date: ?d >= "2004-01-01"^^xsd:date',
}


def function(name: str, place: Place) -> NotSupported:
    if name.upper() in _AGGREGATES:
        return not_supported(f"the aggregate {name.upper()} is", place, _WHOLE)
    hint = _INSTEAD.get(name.upper())
    if hint is None:
        suggestion = closest(name.upper(), ("CONTAINS", "STRSTARTS"))
        hint = f"did you mean {suggestion}?" if suggestion else "functions are CONTAINS and STRSTARTS"
    return not_supported(f"the function {name.upper()} is", place, hint)


def paths(place: Place) -> NotSupported:
    return not_supported("property paths are", place, "write an edge for each step, with variables between")


def collections(edge: bool, place: Place) -> NotSupported:
    hint = "write edges of GQL without braces" if edge else "write its edges: rdf:first and rdf:rest"
    return not_supported("a list of nodes is", place, hint)


def nested(construct: str, place: Place) -> NotSupported:
    return not_supported(f"{construct} is", place, "write its edges beside the others")


def projection(word: str, place: Place) -> NotSupported:
    if word.upper() in _AGGREGATES:
        return function(word, place)
    return not_supported("an expression in SELECT is", place, "select variables: SELECT ?x ?y, or SELECT *")


def alternatives(word: str, place: Place, *, sparql: bool) -> NotSupported:
    return not_supported(f"'{word}' is", place, _EITHER, sparql=sparql)


def negation(place: Place) -> NotSupported:
    return not_supported("'!' is", place, "!= asks for another value")


def arithmetic(place: Place) -> NotSupported:
    return not_supported("arithmetic is", place, "compare a variable with a value")


def no_comparison(variables: int, place: Place, *, sparql: bool) -> NotSupported:
    construct = "comparing two variables is" if variables else "comparing two values is"
    return not_supported(construct, place, "compare a variable with a value: ?x >= 5", sparql=sparql)


def alone(place: Place, *, sparql: bool) -> NotSupported:
    return not_supported("a condition without a comparison is", place, "compare: ?x = true", sparql=sparql)


def ordered_node(place: Place) -> NotSupported:
    hint = "in GQL it is a class: SELECT ?x WHERE (...) AND ?x <= ex:Class"
    return not_supported("the order of an IRI is", place, hint)


def argument(name: str, place: Place, *, sparql: bool) -> NotSupported:
    hint = f'write {name}(?x, "oak")' if sparql else f'write ?x {name} "oak"'
    return not_supported(f"{name} of anything but a variable and a string is", place, hint, sparql=sparql)


def empty_string(name: str, place: Place) -> CheckProblem:
    message = f"every string {name} the empty string"
    return CheckProblem(message, place=place, accepted="a non-empty string")


def no_order(place: Place) -> CheckProblem:
    message = "values of this datatype have no known order: this can never match"
    accepted = "numbers, strings, booleans, dates and date-times"
    return CheckProblem(message, place=place, accepted=accepted)


def unknown_prefix(prefix: str, prefixes: Iterable[str], place: Place) -> CheckProblem:
    suggestion = closest(prefix, prefixes)
    hint = f"did you mean '{suggestion}:'?" if suggestion else f"write PREFIX {prefix}: <...> in front"
    accepted = f"declared prefixes and {', '.join(sorted(prefixes))}"
    return CheckProblem(f"the prefix '{prefix}:' is not declared", place=place, accepted=accepted, hint=hint)


def declared_twice(prefix: str, place: Place) -> CheckProblem:
    message = f"the prefix '{prefix}:' is declared twice"
    return CheckProblem(message, place=place, accepted="one meaning for each prefix")


def relative(place: Place) -> CheckProblem:
    accepted = "a whole IRI such as <http://example.org/page>"
    return CheckProblem(
        "a relative IRI without a base", place=place, accepted=accepted, hint="or write BASE <...> in front"
    )


def no_edge(name: str, names: Iterable[str], place: Place) -> CheckProblem:
    suggestion = closest(name, names)
    hint = f"did you mean ?{suggestion}?" if suggestion else f"write an edge with ?{name} in it"
    accepted = ", ".join(f"?{variable}" for variable in names) or None
    return CheckProblem(f"the variable ?{name} is not in any edge", place=place, accepted=accepted, hint=hint)


def no_subject(place: Place) -> CheckProblem:
    accepted = "an IRI or a variable"
    return CheckProblem("a literal cannot be the subject of an edge", place=place, accepted=accepted)


def no_property(place: Place) -> CheckProblem:
    return CheckProblem(
        "this cannot be the property of an edge", place=place, accepted="an IRI or a variable"
    )


def too_many(plural: str, limit: int, place: Place) -> SyntaxProblem:
    return SyntaxProblem(f"too many {plural}", place=place, accepted=f"at most {limit:,}")


def bad_date(place: Place) -> SyntaxProblem:
    return SyntaxProblem("there is no such date", place=place, accepted="2004-05-31 or 2004-05-31T12:00:00Z")


def between_microseconds(place: Place) -> CheckProblem:
    return CheckProblem(BETWEEN_MICROSECONDS, place=place, accepted=WHOLE_MICROSECONDS)


def bare_date(word: str, place: Place) -> SyntaxProblem:
    kind = "dateTime" if "T" in word.upper() else "date"
    return SyntaxProblem("SPARQL has no bare dates", place=place, hint=f'write "{word}"^^xsd:{kind}')


def empty(text: str) -> SyntaxProblem:
    accepted = "a text such as SELECT ?page WHERE (?page, dc:title, ?t) AND ?t contains 'oak'"
    return SyntaxProblem("the text is empty", place=Place.at(text, 0), accepted=accepted)


_PAIRS = {"==": "=", "=<": "<=", "=>": ">=", "<>": "!=", "=!": "!="}


def expected(accepted: str, tokens: Tokens, position: int, hint: str | None = None) -> SyntaxProblem:
    """Make the error for an unexpected token; two tokens that are one operator in other languages are named."""
    previous, word = tokens.words[position - 1] if position else "", tokens.words[position]
    for first in (position - 1, position):
        two = tokens.words[max(0, first) : first + 2]
        pair = "".join(two)
        if pair in _PAIRS and all(two) and tokens.touch(first + 1):  # <> alone is an IRI
            place = tokens.place(first, first + 1)
            return SyntaxProblem(f"write '{_PAIRS[pair]}' instead of '{pair}'", place=place)
    context = f" after {_quoted(previous)}" if previous else ""
    like = closest(word.upper(), ("SELECT", "WHERE", "AND", "PREFIX", "FILTER"))
    suggestion = like if like and like in accepted and like != word.upper() else None
    hint = hint or (f"did you mean {suggestion}?" if suggestion else None)
    if previous[:1] in ("'", '"') and tokens.touch(position) and (word[:1] in "'\"" or word.isalpha()):
        hint = f"a quote inside a string is written \\{previous[0]}"
    return SyntaxProblem(f"expected {accepted}{context}", place=tokens.place(position), hint=hint)


def not_closed(tokens: Tokens, opened: int, position: int, closing: str) -> SyntaxProblem:
    """Make the error for a missing bracket; at the end of the text, it points at the one that was opened."""
    if tokens.words[position]:
        return expected(f"'{closing}'", tokens, position)
    message = f"this '{tokens.words[opened]}' is never closed"
    return SyntaxProblem(message, place=tokens.place(opened), accepted=f"a '{closing}' after it")


def _quoted(word: str) -> str:
    return word if word[0] in "\"'" else f"'{word}'"
