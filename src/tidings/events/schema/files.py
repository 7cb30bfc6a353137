"""Schemas as YAML files.

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

A file may be a whole schema (`load`) or an addition to one, which leans on what is there already (`load_parts`).
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from yaml.nodes import Node

from tidings.core.arguments import accepts
from tidings.core.suggest import did_you_mean, printable
from tidings.core.yaml_nodes import Document, is_nothing, write_yaml
from tidings.errors import SchemaError
from tidings.events.schema.domain_files import read_domain, write_domain
from tidings.events.schema.domains import Domain
from tidings.events.schema.event_schema import Attribute, EventSchema, EventType, Member, SchemaParts
from tidings.events.schema.extension import extend

SECTIONS = ("domains", "attributes", "event_types")
ANNOTATIONS = ("mandatory", "optional", "unique", "multiple")
_CONTRADICTIONS = ({"mandatory", "optional"}, {"unique", "multiple"})

T = TypeVar("T", bound=SchemaParts)


@accepts("load_schema('schema.yaml')", path=(str, Path))
def load(path: Path | str) -> EventSchema:
    """The whole schema in a file."""
    return _of_file(load_text, Path(path))


def load_text(text: str) -> EventSchema:
    """The whole schema in a text: what the empty schema becomes when it is extended by it."""
    return extend(EventSchema(), parts_of_text(text)).schema


def load_parts(path: Path | str) -> SchemaParts:
    """What a file says, as an addition to a schema."""
    return _of_file(parts_of_text, Path(path))


def parts_of_text(text: str) -> SchemaParts:
    """What a text says, as an addition to a schema."""
    document = Document(text)
    sections = {name: node for name, _, node in document.items(document.root, "a schema", SECTIONS)}
    return SchemaParts(
        _domains(document, sections.get("domains")),
        _attributes(document, sections.get("attributes")),
        _event_types(document, sections.get("event_types")),
        document.places,
    )


def dump(schema: SchemaParts) -> str:
    """The schema as a text that `load_text` reads."""
    sections = {
        "domains": {domain.name: write_domain(domain) for domain in schema.domains.values()},
        "attributes": {attribute.name: attribute.domain for attribute in schema.attributes.values()},
        "event_types": {each.name: _written(each) for each in schema.event_types.values()},
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
    found: dict[str, Domain] = {}
    for name, key, node in document.items(section, "domains"):
        if is_nothing(node):
            hint = "a domain cannot be removed: schemas are only extended"
            raise document.problem(
                key, f"nothing is said of domain {name}", "a kind, values or concepts", hint
            )
        document.places["domains", name] = document.place(key)
        found[name] = read_domain(document, name, node)
    return found


def _attributes(document: Document, section: Node | None) -> dict[str, Attribute]:
    found: dict[str, Attribute] = {}
    for name, key, node in document.items(section, "attributes"):
        if is_nothing(node):
            hint = "an attribute cannot be removed: schemas are only extended"
            raise document.problem(key, f"attribute {name} has no domain", "the name of a domain", hint)
        document.places["attributes", name] = document.place(node)
        found[name] = Attribute(name, document.name(node, f"the domain of attribute {name}"))
    return found


def _event_types(document: Document, section: Node | None) -> dict[str, EventType]:
    found: dict[str, EventType] = {}
    for name, key, node in document.items(section, "event_types"):
        document.places["event_types", name] = document.place(key)
        said = {k: v for k, _, v in document.items(node, f"event type {name}", ("open", "attributes"))}
        is_open = "open" in said and document.choice(said["open"], "open", ("true", "false")) == "true"
        found[name] = EventType(name, _members(document, name, said.get("attributes")), is_open)
    return found


def _members(document: Document, event_type: str, section: Node | None) -> tuple[Member, ...]:
    members = []
    for name, key, node in document.items(section, f"the attributes of {event_type}"):
        document.places["event_types", event_type, name] = document.place(key)
        members.append(_member(document, name, node))
    return tuple(members)


def _member(document: Document, name: str, node: Node) -> Member:
    """`price: mandatory`; what is not said is optional and unique."""
    said = [] if is_nothing(node) else document.text_of(node, f"what is said of {name}").split()
    for word in said:
        if word not in ANNOTATIONS:
            what = f"{name} cannot be '{printable(word)}'"
            raise document.problem(node, what, ", ".join(ANNOTATIONS), did_you_mean(word, ANNOTATIONS))
    if any(pair <= set(said) for pair in _CONTRADICTIONS):
        raise document.problem(node, f"{name} cannot be {' and '.join(said)}", "one of each pair")
    return Member(name, "mandatory" in said, "multiple" in said)


def _written(event_type: EventType) -> dict[str, Any] | None:
    said: dict[str, Any] = {"open": True} if event_type.open else {}
    if event_type.members:
        said["attributes"] = {member.attribute: _words(member) for member in event_type.members}
    return said or None


def _words(member: Member) -> str:
    """The annotations, `unique` left unsaid."""
    return member.words.removesuffix(" unique")
