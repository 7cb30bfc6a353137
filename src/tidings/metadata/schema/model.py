"""The schema of metadata: classes, properties with their ranges, and the strength of references.

    CycleProvider --serverInformation (strong)--> ServerInformation --memory--> number

Rules use short names: the last part of an IRI, with a prefix where two would collide.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from enum import Enum

from tidings.errors import SchemaError
from tidings.graphs.model import INTEGERS, LANGUAGE_STRING, RDFS, STRING, XSD, Meaning, Term, literal, meaning
from tidings.values import INT64_MAX, INT64_MIN, Instant, Kind, Scalar

MAX_ANCESTORS = 500
"""The limit of a class and its superclasses. A resource is indexed once for each; thousands would take minutes."""


class Reference(Enum):
    """The strength of a reference: the target of a strong one is always sent along, that of a weak one never."""

    STRONG = "strong"
    WEAK = "weak"


@dataclass(frozen=True, slots=True)
class Class:
    """A class with its direct superclasses."""

    name: str
    iri: str
    parents: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Property:
    """A property of the instances of a class and its subclasses.

    `kind` is the kind of its literals; for references it is None, and `leads_to` is the class of the targets. Without
    `several` (set-valued in the paper) it has at most one value. `dates` are instants that are shown as days.
    """

    name: str
    iri: str
    of: str
    kind: Kind | None = None
    leads_to: str | None = None
    reference: Reference | None = None
    several: bool = False
    dates: bool = field(default=False, compare=False)


@dataclass(frozen=True, slots=True)
class Schema:
    """All classes and properties by name. The class hierarchy is computed once."""

    classes: Mapping[str, Class]
    properties: Mapping[str, tuple[Property, ...]]
    """By name: two classes may have different properties of the same name."""

    _above: Mapping[str, frozenset[str]] = field(init=False, repr=False, compare=False)
    _resolved: dict[tuple[str, str], Property] = field(
        init=False, repr=False, compare=False, default_factory=dict
    )

    def __post_init__(self) -> None:
        """Compute superclasses, parents first. Without recursion: hierarchies can be deep."""
        above: dict[str, frozenset[str]] = {}
        pending, visited = list(self.classes), set[str]()
        while pending:
            name = pending[-1]
            parents = self.classes[name].parents
            missing = [parent for parent in parents if parent not in above]
            if missing and name in visited:  # reached again before its parents were done
                raise SchemaError("cyclic class hierarchy", where=name)
            visited.add(name)
            if missing:
                pending.extend(missing)
            else:
                pending.pop()
                above[name] = frozenset({name}).union(*(above[parent] for parent in parents))
                if len(above[name]) > MAX_ANCESTORS:
                    message = f"a class has more than {MAX_ANCESTORS - 1:,} superclasses"
                    raise SchemaError(message, where=name, hint="flatten the class hierarchy")
        object.__setattr__(self, "_above", above)

    def at_or_above(self, name: str) -> frozenset[str]:
        """Return a class and all its superclasses."""
        return self._above[name]

    def at_or_below(self, name: str) -> frozenset[str]:
        """Return a class and all its subclasses."""
        return frozenset(other for other, above in self._above.items() if name in above)

    def property_of(self, cls: str, name: str) -> Property | None:
        """Return the property that a name means for the instances of a class."""
        property = self._resolved.get((cls, name))
        if property is None:
            above = self._above[cls]
            property = next((each for each in self.properties.get(name, ()) if each.of in above), None)
            if property is not None:
                self._resolved[cls, name] = property
        return property


# Values: RDF literals are converted to the kind of the property, in one canonical form.
#
#     memory="92"                           a string in RDF, but a number by the schema's range
#     "2004-05-31T14:30:00+02:00"           stored as 2004-05-31T12:30:00.000000Z
#
# Instants are strings of equal length in UTC: they sort chronologically in any database. Whole numbers are integers, so
# that 5.0 in one version of a document and 5 in the next is not a change.

_TEXTS = frozenset(
    {STRING, LANGUAGE_STRING, *(XSD + name for name in ("anyURI", "normalizedString", "token", "language"))}
)
DATE = XSD + "date"
DATATYPE_KINDS: Mapping[str, Kind] = {
    **dict.fromkeys(sorted(_TEXTS), Kind.STRING),
    RDFS + "Literal": Kind.STRING,
    **dict.fromkeys([XSD + name for name in (*INTEGERS, "decimal", "double", "float")], Kind.NUMBER),
    XSD + "boolean": Kind.BOOLEAN,
    **dict.fromkeys([XSD + "dateTime", DATE], Kind.INSTANT),
}
"""The kind of values of a property, by the datatype that is its range."""

_UNTYPED = {Kind.NUMBER: XSD + "double", Kind.BOOLEAN: XSD + "boolean", Kind.INSTANT: XSD + "dateTime"}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def parse_literal(term: Term, kind: Kind) -> Scalar | None:
    """Parse a literal as a value of a kind; None if it is not one.

    An untyped literal is parsed as the kind requires. A typed literal must match: the integer 5 is not a string.
    """
    if kind is Kind.STRING:
        return term.text if term.datatype in _TEXTS else None
    datatype = _UNTYPED[kind] if term.datatype == STRING else term.datatype
    parsed = meaning(literal(term.text.strip(" \t\r\n"), datatype))
    return None if parsed is None else _CONVERTERS[kind](parsed)


def _to_number(parsed: Meaning) -> Scalar | None:
    number = parsed.value
    if parsed.kind != "number" or not math.isfinite(number):
        return None
    whole = isinstance(number, float) and number.is_integer() and INT64_MIN <= int(number) <= INT64_MAX
    return int(number) if whole else number


def _to_boolean(parsed: Meaning) -> Scalar | None:
    return bool(parsed.value) if parsed.kind == "boolean" else None


def _to_instant(parsed: Meaning) -> Scalar | None:
    return format_instant(parsed.value) if parsed.kind == "instant" else None


_CONVERTERS = {Kind.NUMBER: _to_number, Kind.BOOLEAN: _to_boolean, Kind.INSTANT: _to_instant}


def format_instant(instant: Instant) -> str | None:
    """Format an instant canonically; None if it lies between two microseconds, or outside of years 1 to 9999 in UTC."""
    if instant.between:
        return None
    try:
        moment = _EPOCH + timedelta(microseconds=instant.micros)
    except OverflowError:
        return None
    return f"{moment.year:04}-{moment:%m-%dT%H:%M:%S.%f}Z"


# Short names:
#
#     http://example.org/servers#memory       memory
#     http://example.org/disks#memory         together with the one above: servers:memory and disks:memory
#
# Characters that a rule cannot contain become underscores. Prefixes are derived from the IRI: graphs do not keep the
# prefixes they were written with, and two documents may use different ones for the same namespace.


_SEPARATORS = re.compile(r"[/#:?&=]+")
_NON_WORD = re.compile(r"[^\w-]+")


def assign_short_names(iris: Iterable[str]) -> Mapping[str, str | None]:
    """Return the short name of each IRI; None where there is no unique one."""
    parts = {iri: _words(iri) for iri in iris}
    by_name: dict[str | None, list[str]] = defaultdict(list)
    for iri, words in parts.items():
        by_name[_name(words, 1)].append(iri)
    assigned: dict[str, str | None] = {}
    for name, same in by_name.items():
        names = _add_prefixes({iri: parts[iri] for iri in same}) if len(same) > 1 else {same[0]: name}
        assigned |= {iri: names.get(iri) for iri in same}
    return {iri: assigned[iri] for iri in parts}


def local_name(iri: str) -> str:
    """Return the last part of an IRI unchanged."""
    return _SEPARATORS.split(iri)[-1]


def _add_prefixes(parts: Mapping[str, list[str]]) -> Mapping[str, str | None]:
    """Return names with the shortest prefixes that make them unique; nothing if none do."""
    longest = max(map(len, parts.values()))
    for length in range(2, longest + 1):
        names = {iri: _name(words, length) for iri, words in parts.items()}
        if len(set(names.values())) == len(names):
            return names
    return {}


def _words(iri: str) -> list[str]:
    """Split an IRI into words. Parts that begin with a digit, such as versions and years, are dropped."""
    *leading, last = (_NON_WORD.sub("_", part) for part in _SEPARATORS.split(iri))
    return [*filter(_is_word, leading), last]


def _name(words: list[str], length: int) -> str | None:
    *prefix, end = words[-length:]
    return ":".join(["_".join(prefix), end] if prefix else [end]) if _is_word(end) else None


def _is_word(text: str) -> bool:
    return text[:1].isalpha() or text[:1] == "_"


class Vocabulary:
    """Lookup of the classes and properties of a schema by IRI."""

    def __init__(self, schema: Schema) -> None:
        self.schema = schema
        self._classes = {each.iri: each.name for each in schema.classes.values()}
        self._properties = {each.iri: name for name, same in schema.properties.items() for each in same}
        self._places = {name: place for place, name in enumerate(schema.properties)}
        self._resolved: dict[tuple[str, str], Property | None] = {}

    def class_of(self, iri: str) -> str | None:
        return self._classes.get(iri)

    def property_of(self, cls: str, iri: str) -> Property | None:
        """Return the property that an IRI means for the instances of a class."""
        name = self._properties.get(iri)
        if name is None:
            return None  # not cached: documents with arbitrary IRIs would fill the memory
        key = (cls, name)
        if key not in self._resolved:
            self._resolved[key] = self.schema.property_of(cls, name)
        return self._resolved[key]

    def place_of(self, name: str) -> int:
        """Return the place of a property in the schema, which is its place in resources, too."""
        return self._places[name]

    def short(self, iri: str) -> str:
        """Return the short name of an IRI, or its last part if the schema does not declare it."""
        return self._classes.get(iri) or self._properties.get(iri) or local_name(iri)

    def properties(self, cls: str) -> list[str]:
        """List the names of the properties that instances of a class may have."""
        return [name for name in self.schema.properties if self.schema.property_of(cls, name)]

    def classes_with(self, iri: str) -> list[str]:
        """List the classes that declare a property."""
        return [property.of for property in self.schema.properties.get(self._properties.get(iri, ""), ())]
