"""Documents without anything odd, from statements to resources in one go.

Nothing is said here of what is wrong: who gets no answer reads the document again, in the way that collects findings.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tidings.graphs import STRING, TYPE, literal
from tidings.metadata.literals import value_of
from tidings.metadata.resources import Ref, Resource, Value
from tidings.metadata.schema import Property
from tidings.metadata.vocabulary import Vocabulary
from tidings.publications.rdf_simple import Statement
from tidings.values import Kind

_Said = dict[str, list[tuple[str, str]]]
"""What is said of a subject: by property, objects with their datatypes."""

_SHORT = 18
"""So many digits are below 2**63."""


def resources(
    statements: Iterable[Statement], uri: str, vocabulary: Vocabulary
) -> tuple[Resource, ...] | None:
    """The resources in the order of their URIs; None if something is wrong, or needs a closer look."""
    said: dict[str, _Said] = {}
    classes: dict[str, str] = {}
    for subject, property, object, datatype in statements:
        if property != TYPE:
            said.setdefault(subject, {}).setdefault(property, []).append((object, datatype))
            continue
        cls = None if datatype else vocabulary.class_of(object)
        if cls is None or subject in classes:  # of several classes, the lowest would have to be found
            return None
        classes[subject] = cls
    if not said.keys() <= classes.keys() or not _belong(classes, uri):
        return None
    found = []
    for subject in sorted(classes):
        values = _values(classes[subject], said.get(subject, {}), classes, vocabulary)
        if values is None:
            return None
        found.append(Resource(subject, classes[subject], values))
    return tuple(found)


def _belong(subjects: Iterable[str], uri: str) -> bool:
    start = f"{uri}#"
    return all(subject.startswith(start) or subject == uri for subject in subjects)


def _values(
    cls: str, said: _Said, classes: Mapping[str, str], vocabulary: Vocabulary
) -> Mapping[str, tuple[Value, ...]] | None:
    found: dict[str, tuple[Value, ...]] = {}
    for iri, objects in said.items():
        property = vocabulary.property_of(cls, iri)
        if property is None or property.name in found or (len(objects) > 1 and not property.several):
            return None
        values = [_value(*object, property, classes, vocabulary) for object in objects]
        if None in values:
            return None
        found[property.name] = tuple(sorted(set(values))) if len(values) > 1 else tuple(values)  # type: ignore[arg-type]
    return {each: found[each] for each in sorted(found, key=vocabulary.place_of)}


def _value(
    object: str, datatype: str, property: Property, classes: Mapping[str, str], vocabulary: Vocabulary
) -> Value | None:
    kind = property.kind
    if kind is None or not datatype:
        refers = kind is None and not datatype
        return Ref(object) if refers and _leads(object, property, classes, vocabulary) else None
    if kind is Kind.NUMBER and datatype == STRING and len(object) <= _SHORT and _is_whole(object):
        return int(object)
    if kind is Kind.STRING and datatype == STRING:
        return object
    return value_of(literal(object, datatype), kind)


def _is_whole(text: str) -> bool:
    return text.isascii() and text.isdigit()


def _leads(target: str, property: Property, classes: Mapping[str, str], vocabulary: Vocabulary) -> bool:
    """Whether a reference leads to its class; where it leads in another document is not known here."""
    cls = classes.get(target)
    return cls is None or property.leads_to in vocabulary.schema.at_or_above(cls)
