"""Notation shared by the readers: cardinalities, stereotypes with their tagged values, and names of types."""

from __future__ import annotations

import re

from tidings.core.suggest import closest
from tidings.objects.model.class_model import ANY_CARDINALITY, Cardinality, End

CARDINALITY_FORMS = "such as 1, 0..1, *, 1..*, 2..5"
_MANY = frozenset(("*", "n", "m", "many", "-1"))
_RANGE = re.compile(r"\s*(?:([0-9]{1,9})\s*\.\.\.?\s*)?([0-9]{1,9}|\*|[nNmM]|many|-1)\s*")


def parse_cardinality(text: str) -> Cardinality | None:
    """Parse a cardinality; None if the text is not one."""
    match = _RANGE.fullmatch(text)
    if match is None:
        return None
    least = None if match[1] is None else int(match[1])
    if match[2].lower() in _MANY:
        return Cardinality(least or 0)
    most = int(match[2])
    cardinality = Cardinality(most if least is None else least, most)
    return cardinality if cardinality.least <= most and most > 0 else None


_CROWS_FEET = {
    "||": Cardinality(1, 1),
    "|o": Cardinality(0, 1),
    "o|": Cardinality(0, 1),
    "}o": ANY_CARDINALITY,
    "o{": ANY_CARDINALITY,
    "}|": Cardinality(1),
    "|{": Cardinality(1),
    "}": ANY_CARDINALITY,
    "{": ANY_CARDINALITY,
    "*": Cardinality(0, 1),
}


def parse_arrowhead(head: str) -> Cardinality:
    """Return the cardinality of an arrowhead: crow's feet; with a composition diamond at most one whole."""
    return _CROWS_FEET.get(head, ANY_CARDINALITY)


def find_owning_end(source: Cardinality, target: Cardinality) -> End | None:
    """Return the end whose table has the foreign key: the source for one to one, None for many to many."""
    if target.is_one:
        return End.SOURCE
    return End.TARGET if source.is_one else None


_CLASS = frozenset(("label", "table", "key"))
_LINK = frozenset(("table", "column", "source_column", "target_column"))
_LIMITS = frozenset(("attributes", "kinds"))

CLASS_STEREOTYPES = {"subscriber": _CLASS, "stored": _CLASS}
ASSOCIATION_STEREOTYPES = {
    "implicit": _LIMITS | _LINK | {"told"},
    "propagates": _LIMITS | _LINK | {"towards"},
    "stored": _LINK,
}
ATTRIBUTE_STEREOTYPES = {"stored": frozenset(("column",))}
STEREOTYPE_NAMES = ("subscriber", "implicit", "propagates", "stored")


def normalize_stereotype(name: str) -> str | None:
    """Return the mark of a name, which may begin with a capital, as many tools write it; None if it is none."""
    return next((each for each in STEREOTYPE_NAMES if each == name[:1].lower() + name[1:]), None)


def suggest_stereotype(name: str) -> str | None:
    """Suggest the mark that was probably meant: `subscribr` is close to one, `entity` is of another profile."""
    return closest(name.lower(), STEREOTYPE_NAMES, 0.75)


_TYPE_NAMES = {
    "string": "string str text char varchar nvarchar nchar character unicode unicodetext estring clob uuid",
    "integer": "integer int long short byte bigint smallint tinyint biginteger smallinteger eint elong serial",
    "real": "real float double decimal numeric number bigdecimal edouble efloat money",
    "boolean": "boolean bool eboolean bit",
    "date": "date localdate edate",
    "time": "time localtime",
    "datetime": "datetime timestamp instant localdatetime offsetdatetime zoneddatetime timestamptz",
    "bytes": "bytes binary blob bytea varbinary largebinary",
}
_TYPES_BY_SPELLING = {each: name for name, spelled in _TYPE_NAMES.items() for each in spelled.split()}
_LENGTH = re.compile(r"\([^()]*\)$")
_FOREIGN = re.compile(r"\A(?:EA[A-Za-z]*_|.*[#.:/])", re.DOTALL)


def normalize_type(written: str | None) -> str | None:
    """Map the spellings of databases and UML tools to one name; unknown types stay as written.

    `varchar(40)`, `String` and `EString` are `string`.
    """
    plain = _LENGTH.sub("", written.strip()).strip() if written else ""
    if not plain:
        return None
    return (
        _TYPES_BY_SPELLING.get(plain.lower())
        or _TYPES_BY_SPELLING.get(_FOREIGN.sub("", plain).lower())
        or plain
    )
