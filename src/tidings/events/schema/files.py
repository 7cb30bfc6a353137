"""Schema files in YAML.

    domains:
      period: {values: [XVI, XVII, XVIII], ordered: true}
    attributes:
      price: numeric
      period: period
    event_types:
      antiques:
        attributes:
          price: mandatory
          period: optional multiple

A file is a whole schema (`load`) or an addition that refers to an existing one (`load_parts`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeVar

from yaml.nodes import MappingNode, Node, SequenceNode

from tidings.core.arguments import accepts
from tidings.core.suggest import did_you_mean, printable
from tidings.core.yaml_nodes import Document, is_nothing, write_yaml
from tidings.errors import SchemaError
from tidings.events.schema.domains import Domain, DomainKind
from tidings.events.schema.event_schema import Attribute, EventSchema, EventType, Member, SchemaParts
from tidings.events.schema.extension import extend
from tidings.values import to_number

SECTIONS = ("domains", "attributes", "event_types")
ANNOTATIONS = ("mandatory", "optional", "unique", "multiple")
_CONTRADICTIONS = ({"mandatory", "optional"}, {"unique", "multiple"})

T = TypeVar("T", bound=SchemaParts)


@accepts("load_schema('schema.yaml')", path=(str, Path))
def load(path: Path | str) -> EventSchema:
    """Load a whole schema from a file."""
    return _of_file(load_text, Path(path))


def load_text(text: str) -> EventSchema:
    """Parse a whole schema: the text as an extension of the empty schema."""
    return extend(EventSchema(), parts_of_text(text)).schema


def load_parts(path: Path | str) -> SchemaParts:
    """Load an addition to a schema from a file."""
    return _of_file(parts_of_text, Path(path))


def parts_of_text(text: str) -> SchemaParts:
    """Parse an addition to a schema."""
    document = Document(text)
    sections = {name: node for name, _, node in document.items(document.root, "a schema", SECTIONS)}
    return SchemaParts(
        _domains(document, sections.get("domains")),
        _attributes(document, sections.get("attributes")),
        _event_types(document, sections.get("event_types")),
        document.places,
    )


def dump(schema: SchemaParts) -> str:
    """Write the schema as text for `load_text`."""
    sections = {
        "domains": {domain.name: write_domain(domain) for domain in schema.domains.values()},
        "attributes": {attribute.name: attribute.domain for attribute in schema.attributes.values()},
        "event_types": {each.name: _write_event_type(each) for each in schema.event_types.values()},
    }
    return write_yaml({name: section for name, section in sections.items() if section})


def _of_file(read: Callable[[str], T], path: Path) -> T:
    try:
        return read(path.read_text(encoding="utf-8"))
    except SchemaError as error:
        raise SchemaError(
            f"{path}: {error.what}",
            place=error.place,
            where=error.where,
            received=error.received,
            accepted=error.accepted,
            hint=error.hint,
        ) from None
    except OSError as error:
        raise SchemaError(
            f"cannot read {path}: {error.strerror}", accepted="a schema as a YAML file"
        ) from None
    except UnicodeDecodeError as error:
        raise SchemaError(f"{path} is not UTF-8", where=f"byte {error.start}", accepted="UTF-8") from None


def _domains(document: Document, section: Node | None) -> dict[str, Domain]:
    parts: dict[str, Domain] = {}
    for name, key, node in document.items(section, "domains"):
        if is_nothing(node):
            hint = "a domain cannot be removed: schemas are only extended"
            raise document.problem(key, f"domain {name} is empty", "a kind, values or concepts", hint)
        document.places["domains", name] = document.place(key)
        parts[name] = read_domain(document, name, node)
    return parts


def _attributes(document: Document, section: Node | None) -> dict[str, Attribute]:
    parts: dict[str, Attribute] = {}
    for name, key, node in document.items(section, "attributes"):
        if is_nothing(node):
            hint = "an attribute cannot be removed: schemas are only extended"
            raise document.problem(key, f"attribute {name} has no domain", "the name of a domain", hint)
        document.places["attributes", name] = document.place(node)
        parts[name] = Attribute(name, document.name(node, f"the domain of attribute {name}"))
    return parts


def _event_types(document: Document, section: Node | None) -> dict[str, EventType]:
    parts: dict[str, EventType] = {}
    for name, key, node in document.items(section, "event_types"):
        document.places["event_types", name] = document.place(key)
        settings = {k: v for k, _, v in document.items(node, f"event type {name}", ("open", "attributes"))}
        is_open = (
            "open" in settings and document.choice(settings["open"], "open", ("true", "false")) == "true"
        )
        parts[name] = EventType(name, _members(document, name, settings.get("attributes")), is_open)
    return parts


def _members(document: Document, event_type: str, section: Node | None) -> tuple[Member, ...]:
    members = []
    for name, key, node in document.items(section, f"the attributes of {event_type}"):
        document.places["event_types", event_type, name] = document.place(key)
        members.append(_member(document, name, node))
    return tuple(members)


def _member(document: Document, name: str, node: Node) -> Member:
    """Read `price: mandatory`; the default is optional and unique."""
    words = [] if is_nothing(node) else document.text_of(node, f"the annotations of {name}").split()
    for word in words:
        if word not in ANNOTATIONS:
            message = f"{name} cannot be '{printable(word)}'"
            raise document.problem(node, message, ", ".join(ANNOTATIONS), did_you_mean(word, ANNOTATIONS))
    if any(pair <= set(words) for pair in _CONTRADICTIONS):
        raise document.problem(
            node, f"{name} cannot be {' and '.join(words)}", "mandatory or optional, and unique or multiple"
        )
    return Member(name, "mandatory" in words, "multiple" in words)


def _write_event_type(event_type: EventType) -> dict[str, Any] | None:
    written: dict[str, Any] = {"open": True} if event_type.open else {}
    if event_type.members:
        written["attributes"] = {member.attribute: _words(member) for member in event_type.members}
    return written or None


def _words(member: Member) -> str:
    """The annotations, without the default `unique`."""
    return member.words.removesuffix(" unique")


SETTINGS = {
    DomainKind.NUMERIC: ("minimum", "maximum"),
    DomainKind.STRING: (),
    DomainKind.BOOLEAN: (),
    DomainKind.INSTANT: (),
    DomainKind.ENUMERATED: ("values", "ordered", "order"),
    DomainKind.HIERARCHICAL: ("concepts",),
}
"""The settings of each kind of domain, in addition to `kind`."""

NESTED = 6
"""Maximum nesting of concepts when written; deeper ones continue at the left margin."""

Below = dict[str, tuple[str, ...]]
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?", re.ASCII)


def read_domain(document: Document, name: str, node: Node) -> Domain:
    """Read the domain of that name; `name: numeric` is short for `name: {kind: numeric}`.

    period:   {values: [XVI, XVII, XVIII], ordered: true}             values in ascending order
    repair:   {values: [new, mended, worn, broken],                   ascending chains of a partial order
               order: [[broken, worn, new], [broken, mended, new]]}
    category:                                                         inner concepts are kinds of the outer one;
      concepts:                                                       a concept may occur in several places
        dining room: {table: [dining table], chair: [folding chair]}
        outdoor: [bench, folding chair]
    amount:   {kind: numeric, minimum: 0}
    """
    if not isinstance(node, MappingNode):
        return _build_domain(document, node, name, _kind(document, node), {}, None, None)
    accepted = ("kind", *(setting for settings in SETTINGS.values() for setting in settings))
    nodes = {key: value for key, _, value in document.items(node, f"domain {name}", accepted)}
    kind = _kind_of(document, name, node, nodes)
    below = _read_concepts(document, nodes) if "concepts" in nodes else _read_values(document, nodes)
    low, high = _number(document, nodes.get("minimum")), _number(document, nodes.get("maximum"))
    return _build_domain(document, node, name, kind, below, low, high)


def _build_domain(
    document: Document,
    node: Node,
    name: str,
    kind: DomainKind,
    below: Below,
    low: int | float | None,
    high: int | float | None,
) -> Domain:
    """Make the domain; errors get a place."""
    try:
        return Domain(name, kind, below, low, high)
    except SchemaError as error:
        raise document.problem(node, error.what, error.accepted, error.hint) from None


def _kind(document: Document, node: Node) -> DomainKind:
    return DomainKind(document.choice(node, "the kind of a domain", [kind.value for kind in DomainKind]))


def _kind_of(document: Document, name: str, node: Node, settings: dict[str, Node]) -> DomainKind:
    """Return the declared kind, or the one with the given settings; refuse settings of another kind."""
    fitting = [kind for kind in DomainKind if "kind" not in settings and set(settings) & set(SETTINGS[kind])]
    if "kind" not in settings and not fitting:
        raise document.problem(node, f"domain {name} has no kind", ", ".join(DomainKind))
    kind = _kind(document, settings["kind"]) if "kind" in settings else fitting[0]
    for setting, value in settings.items():
        if setting != "kind" and setting not in SETTINGS[kind]:
            accepted = ", ".join(("kind", *SETTINGS[kind]))
            raise document.problem(value, f"domain {name} is {kind} and has no {setting}", accepted)
    return kind


def _number(document: Document, node: Node | None) -> int | float | None:
    if node is None:
        return None
    text = document.text_of(node, "a bound")
    number = to_number(text) if _NUMBER.fullmatch(text) else None
    if number is None:
        raise document.problem(node, f"'{printable(text)}' is not a number", "a number such as 0 or 99.5")
    return number


def _read_values(document: Document, settings: dict[str, Node]) -> Below:
    if "values" not in settings:
        return {}
    below: Below = {}
    for node in document.elements(settings["values"], "values"):
        value = document.name(node, "a value")
        if value in below:
            raise document.problem(node, f"the value '{value}' is listed twice")
        below[value] = ()
    for low, high in _order(document, settings, list(below)):
        below[low] = (*below[low], high)
    return below


def _order(document: Document, settings: dict[str, Node], values: list[str]) -> Iterator[tuple[str, str]]:
    """Yield the pairs (lower, higher) of `order`, or those of `ordered: true`."""
    ordered = (
        "ordered" in settings and document.choice(settings["ordered"], "ordered", ("true", "false")) == "true"
    )
    if ordered and "order" in settings:
        raise document.problem(settings["ordered"], "ordered and order cannot be combined", "one of them")
    if ordered:
        yield from pairwise(values)
    for chain in document.elements(settings["order"], "order") if "order" in settings else []:
        nodes = document.elements(chain, "a chain of the order")
        yield from pairwise([document.choice(node, "a value of the order", values) for node in nodes])


def _read_concepts(document: Document, settings: dict[str, Node]) -> Below:
    below: Below = {}
    for concept, parent in _walk(document, settings["concepts"], None):
        below[concept] = (*below.get(concept, ()), *([parent] if parent else ()))
    return below


def _walk(document: Document, node: Node, parent: str | None) -> Iterator[tuple[str, str | None]]:
    """Yield every concept and its parent, once for each place where it occurs."""
    if isinstance(node, SequenceNode):
        for element in node.value:
            yield from _walk(document, element, parent)
    elif isinstance(node, MappingNode):
        for concept, _, inner in document.items(node, "concepts"):
            yield concept, parent
            yield from () if is_nothing(inner) else _walk(document, inner, concept)
    else:
        yield document.name(node, "a concept"), parent


def write_domain(domain: Domain) -> Any:
    """Write the domain in the form that `read_domain` reads."""
    if domain.kind is DomainKind.HIERARCHICAL:
        return {"concepts": _written_concepts(domain)}
    if domain.kind is DomainKind.ENUMERATED:
        return {"values": list(domain.values)} | _written_order(domain)
    bounds = {"minimum": domain.minimum, "maximum": domain.maximum}
    settings = {name: bound for name, bound in bounds.items() if bound is not None}
    return {"kind": domain.kind.value} | settings if settings else domain.kind.value


def _written_order(domain: Domain) -> dict[str, Any]:
    pairs = [[low, high] for low, above in domain.below.items() for high in above]
    if pairs and pairs == [list(pair) for pair in pairwise(domain.values)]:
        return {"ordered": True}
    return {"order": pairs} if pairs else {}


def _written_concepts(domain: Domain) -> dict[str, Any]:
    inside: dict[str, list[str]] = {concept: [] for concept in domain.below}
    for concept, above in domain.below.items():
        for parent in above:
            inside[parent].append(concept)
    written: set[str] = set()

    def tree(concept: str, room: int) -> Any:
        if not inside[concept] or concept in written or room == 0:
            return None
        written.add(concept)
        trees = {inner: tree(inner, room - 1) for inner in inside[concept]}
        return trees if any(trees.values()) else list(trees)

    roots = {concept: tree(concept, NESTED) for concept, above in domain.below.items() if not above}
    nested = {concept: tree(concept, NESTED) for concept in domain.below if concept not in roots}
    return roots | {concept: inner for concept, inner in nested.items() if inner}
