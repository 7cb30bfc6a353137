"""The tree of an XPath as text, in the one form that every text of the same tree is shown in.

Namespaces are declared in front, as n1, n2 and so on in the order of their first use.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal

from tidings.documents import Axis, NodeKind, show_node
from tidings.languages.xpath_tree import All, Any, Expression, Found, Never, Path, Step, ValueOperator

XML_NAMESPACE = "http://www.w3.org/XML/1998/namespace"

_Namer = Callable[[str], str]


def show(expression: Expression) -> str:
    """The text of a tree; it parses back to the same tree."""
    prefixes: dict[str, str] = {XML_NAMESPACE: "xml"}

    def prefixed(name: str) -> str:
        if not name.startswith("{"):
            return name
        uri, _, local = name[1:].rpartition("}")
        return f"{prefixes.setdefault(uri, f'n{len(prefixes)}')}:{local}"

    shown = _show(expression, prefixed)
    declared = [(prefix, uri) for uri, prefix in prefixes.items() if prefix != "xml"]
    return "".join(f"declare namespace {prefix} = {show_string(uri)}; " for prefix, uri in declared) + shown


def show_briefly(expression: Expression) -> str:
    """The text of a part of a tree for people to read: names as in places of documents, `{uri}price > 50`."""
    return _show(expression, lambda name: name)


def show_string(text: str) -> str:
    if '"' in text and "'" in text:
        raise ValueError(f"no XPath literal has both kinds of quotes: {text!r}")
    return f"'{text}'" if '"' in text else f'"{text}"'


def show_number(number: float) -> str:
    """A number as XPath writes it, without an exponent: 50, -2.5, 0.0000001."""
    shown = format(Decimal(repr(number)), "f")
    return shown.removesuffix(".0")


def _show(expression: Expression, named: _Namer) -> str:
    if isinstance(expression, Found):
        return _show_found(expression, named)
    if isinstance(expression, Never):
        return f"not({_show(expression.part, named)})"
    word = " and " if isinstance(expression, All) else " or "
    return word.join(_show_part(part, named) for part in expression.parts)


def _show_part(part: Expression, named: _Namer) -> str:
    shown = _show(part, named)
    return f"({shown})" if isinstance(part, All | Any) else shown


def _show_found(found: Found, named: _Namer) -> str:
    path, operator, literal = _show_path(found.path, named), found.operator, found.literal
    if operator is None or literal is None:
        return path
    shown = show_string(literal) if isinstance(literal, str) else show_number(literal)
    if operator in (ValueOperator.CONTAINS, ValueOperator.STARTS_WITH):
        return f"{operator.value}({path}, {shown})"
    return f"{path} {operator.value} {shown}"


def _show_path(path: Path, named: _Namer) -> str:
    shown = "".join(_show_step(step, named) for step in path.steps)
    if path.absolute:
        return shown
    return f".{shown}" if not shown or shown.startswith("//") else shown[1:]


def _show_step(step: Step, named: _Namer) -> str:
    slashes = "//" if step.axis is Axis.DESCENDANT else "/"
    name = step.name if step.kind is NodeKind.TEXT else named(step.name)
    return slashes + show_node(step.kind, name) + _show_predicates(step, named)


def _show_predicates(step: Step, named: _Namer) -> str:
    if not step.predicates:
        return ""
    whole = All(step.predicates) if len(step.predicates) > 1 else step.predicates[0]
    return f"[{_show(whole, named)}]"
