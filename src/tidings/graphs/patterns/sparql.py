"""The second spelling of a graph subscription: a basic graph pattern of SPARQL 1.1 with FILTER.

    SELECT ?page WHERE { ?page dc:title ?t ; dc:date ?d . FILTER(?d >= "2004-01-01"^^xsd:date && CONTAINS(?t, "oak")) }

Each rule of the grammar in the braces has a function:

    group   = "{" {"." | FILTER (call | "(" every ")") | triples} "}"
    triples = node [verbs]          verbs  = [verb objects] {";" [verb objects]}
    objects = node {"," node}       node   = term | "[" verbs "]"
    every   = one {"&&" one}        one    = "(" every ")" | call | operand compared operand | variable IN list
"""

from __future__ import annotations

from tidings.graphs.patterns import pattern_errors as refusals
from tidings.graphs.patterns.pattern_reader import Operand, Reader
from tidings.graphs.patterns.pattern_tree import ConstraintKind

_CALLS = {"CONTAINS": ConstraintKind.CONTAINS, "STRSTARTS": ConstraintKind.STARTS_WITH}
_OPERATORS = frozenset(("=", "!=", "<", "<=", ">", ">="))
_PATHS = frozenset(("/", "|", "^", "*", "+", "?"))
_ARITHMETIC = frozenset(("+", "-", "*", "/"))
_DEEPEST = 32


def read_group(reader: Reader) -> None:
    """Parse the braces after WHERE; edges and constraints are collected in the reader."""
    reader.sparql = True
    opened = reader.at
    reader.symbol("{")
    while reader.words[reader.at] not in ("}", ""):
        _part(reader)
    reader.symbol("}", opened)
    word = reader.words[reader.at]
    if word.upper() in refusals.OUTSIDE:
        raise reader.outside()
    if word:
        raise refusals.expected("the end", reader.tokens, reader.at)


def _part(reader: Reader) -> None:
    word = reader.words[reader.at].upper()
    if word == "FILTER":
        _filter(reader)
    elif word in refusals.OUTSIDE:
        raise reader.outside()
    elif word in ("{", "SELECT"):
        raise _nested_group(reader)
    else:
        _triples(reader)
    _dot(reader, after_filter=word == "FILTER")


def _nested_group(reader: Reader) -> Exception:
    """Make the error for a group in a group: one side of UNION, a subquery, or just braces."""
    depth, position = 0, reader.at
    while reader.words[position] and (depth or position == reader.at):
        depth += (reader.words[position] == "{") - (reader.words[position] == "}")
        position += 1
    if reader.words[position].upper() == "UNION":
        return refusals.outside("UNION", reader.tokens.place(position))
    query = "SELECT" in (reader.words[reader.at].upper(), reader.words[reader.at + 1].upper())
    return refusals.nested(
        "a query in a query" if query else "a group in a group", reader.tokens.place(reader.at)
    )


def _dot(reader: Reader, after_filter: bool) -> None:
    """Parse the dot between triples; it is optional next to a FILTER and before the end."""
    word = reader.words[reader.at]
    if word == ".":
        reader.at += 1
    elif (
        word not in ("}", "", "{") and word.upper() not in {"FILTER", *refusals.OUTSIDE} and not after_filter
    ):
        raise refusals.expected("'.', ';', ',' or '}'", reader.tokens, reader.at)


def _triples(reader: Reader) -> None:
    bracket = reader.words[reader.at] == "["
    before = len(reader.edges)
    _refuse_collection(reader)
    subject = _node(reader, 0) if bracket else reader.subject()
    if bracket and len(reader.edges) > before and reader.words[reader.at] in (".", "}", ""):
        return  # `[ ex:p ?o ] .` is complete
    _verbs(reader, subject, 0)


def _verbs(reader: Reader, subject: Operand, depth: int) -> None:
    """Parse the properties of a subject, each with its objects."""
    while True:
        start = reader.at
        _refuse_path(reader, "^!(")
        verb = reader.property()
        _refuse_path(reader, "".join(_PATHS))
        _objects(reader, subject, verb, start, depth)
        while reader.words[reader.at] == ";":
            reader.at += 1
        if reader.words[reader.at - 1] != ";" or _ends_verbs(reader.words[reader.at]):
            return


def _ends_verbs(word: str) -> bool:
    """Return whether the properties of a subject end here; a trailing semicolon is allowed."""
    return word in (".", "}", "]", "", "{") or word.upper() in {"FILTER", *refusals.OUTSIDE}


def _refuse_path(reader: Reader, signs: str) -> None:
    word = reader.words[reader.at]
    signed = word[:1] == "+" and "+" in signs and reader.tokens.touch(reader.at)
    if (word and word in signs) or signed:
        raise refusals.paths(reader.tokens.place(reader.at))


def _objects(reader: Reader, subject: Operand, verb: Operand, start: int, depth: int) -> None:
    while True:
        target = _node(reader, depth)
        reader.edge(subject, verb, target, start)
        if reader.words[reader.at] != ",":
            return
        reader.at += 1
        start = reader.at


def _node(reader: Reader, depth: int) -> Operand:
    """Parse an object: a term, or `[...]`, an unnamed node that may have properties."""
    _refuse_collection(reader)
    if reader.words[reader.at] != "[":
        return reader.operand("a variable, an IRI or a value")
    opened = reader.at
    if depth >= _DEEPEST:
        raise refusals.too_many("brackets inside each other", _DEEPEST, reader.tokens.place(opened))
    reader.at += 1
    node = reader.new_variable(opened)
    if reader.words[reader.at] not in ("]", ""):
        _verbs(reader, node, depth + 1)
    reader.symbol("]", opened)
    return node


def _refuse_collection(reader: Reader) -> None:
    if reader.words[reader.at] == "(":
        raise refusals.collections(reader.words[reader.at + 2] == ",", reader.tokens.place(reader.at))


def _filter(reader: Reader) -> None:
    reader.at += 1
    if reader.words[reader.at] == "(":
        _parenthesised(reader, 0)
    elif reader.words[reader.at + 1] == "(" and reader.words[reader.at].isalpha():
        _call(reader)
    elif reader.words[reader.at].upper() in refusals.OUTSIDE:
        raise reader.outside()
    else:
        raise refusals.expected("'(' or a function", reader.tokens, reader.at)


def _parenthesised(reader: Reader, depth: int) -> None:
    opened = reader.at
    if depth >= _DEEPEST:
        raise refusals.too_many("brackets inside each other", _DEEPEST, reader.tokens.place(opened))
    reader.at += 1
    _condition(reader, depth + 1)
    while reader.words[reader.at] == "&&":
        reader.at += 1
        _condition(reader, depth + 1)
    word, place = reader.words[reader.at], reader.tokens.place(reader.at)
    if word == "||":
        raise refusals.alternatives(word, place, sparql=True)
    if word.upper() == "AND":
        raise refusals.expected("'&&'", reader.tokens, reader.at, "in SPARQL, 'and' is written '&&'")
    reader.symbol(")", opened)


def _condition(reader: Reader, depth: int) -> None:
    word = reader.words[reader.at]
    if word == "(":
        _parenthesised(reader, depth)
    elif word == "!":
        raise refusals.negation(reader.tokens.place(reader.at))
    elif word.upper() in refusals.OUTSIDE:
        raise reader.outside()
    elif reader.words[reader.at + 1] == "(":
        _call(reader)
    else:
        _comparison(reader)


def _comparison(reader: Reader) -> None:
    start = reader.at
    left, written = reader.operand(), reader.words[reader.at]
    if written.upper() == "IN":
        reader.at += 1
        reader.value_list(left, start)
    elif written.upper() in refusals.OUTSIDE:
        raise reader.outside()
    elif written in _ARITHMETIC or written[:1] in ("+", "-"):
        raise refusals.arithmetic(reader.tokens.place(reader.at))
    elif written not in _OPERATORS:
        raise _no_operator(reader, start)
    else:
        reader.at += 1
        if reader.words[reader.at + 1] == "(" and reader.words[reader.at].isalpha():
            raise refusals.function(reader.words[reader.at], reader.tokens.place(reader.at))
        reader.compared(left, written, reader.operand(), start)


def _no_operator(reader: Reader, start: int) -> Exception:
    if reader.words[reader.at] in (")", "&&", "||"):
        return refusals.alone(reader.tokens.place(start, reader.at - 1), sparql=True)
    return refusals.expected("an operator: = != < <= > >= or IN,", reader.tokens, reader.at)


def _call(reader: Reader) -> None:
    """Parse `CONTAINS(?x, "oak")`, also with `STR(?x)`."""
    start, name = reader.at, reader.words[reader.at].upper()
    if name not in _CALLS:
        raise refusals.function(name, reader.tokens.place(start))
    reader.at += 2
    variable = _call_argument(reader)
    if reader.words[reader.at] != ",":
        raise refusals.expected("','", reader.tokens, reader.at)
    reader.at += 1
    text = reader.operand("a string")
    reader.symbol(")", start + 1)
    if reader.words[reader.at] in _OPERATORS:
        raise refusals.not_supported(
            "comparing a function is", reader.tokens.place(reader.at), "leave the comparison out"
        )
    reader.add_text_constraint(variable, _CALLS[name], text, start)


def _call_argument(reader: Reader) -> Operand:
    if reader.words[reader.at + 1] != "(":
        return reader.operand("a variable")
    if reader.words[reader.at].upper() != "STR":
        raise refusals.function(reader.words[reader.at], reader.tokens.place(reader.at))
    reader.at += 2
    operand = reader.operand("a variable")
    reader.symbol(")", reader.at - 2)
    return operand
