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
            what = f"{name} cannot be '{printable(word)}'"
            raise document.problem(node, what, ", ".join(ANNOTATIONS), did_you_mean(word, ANNOTATIONS))
    if any(pair <= set(words) for pair in _CONTRADICTIONS):
        raise document.problem(
            node, f"{name} cannot be {' and '.join(words)}", "mandatory or optional, and unique or multiple"
        )
    return Member(name, "mandatory" in words, "multiple" in words)


def _written(event_type: EventType) -> dict[str, Any] | None:
    written: dict[str, Any] = {"open": True} if event_type.open else {}
    if event_type.members:
        written["attributes"] = {member.attribute: _words(member) for member in event_type.members}
    return written or None


def _words(member: Member) -> str:
    """The annotations, without the default `unique`."""
    return member.words.removesuffix(" unique")
