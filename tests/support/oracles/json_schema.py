"""A check of values against a JSON Schema: as much of it as the shapes of the API use, and nothing else passes."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Any

KINDS: dict[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "null": (type(None),),
}
SAYS_NOTHING = {"title", "description", "default"}


def problems(value: Any, schema: dict[str, Any], document: dict[str, Any], at: str = "") -> list[str]:
    """What of a value contradicts a schema, each with its place."""
    if "type" in schema and (wrong := _type(value, schema["type"], schema, document, at)):
        return wrong
    found: list[str] = []
    for word, asked in schema.items():
        if word not in SAYS_NOTHING:
            found += CHECKS[word](value, asked, schema, document, at)
    return found


def _reference(value: Any, asked: str, _: Any, document: dict[str, Any], at: str) -> list[str]:
    target: Any = document
    for part in asked.removeprefix("#/").split("/"):
        target = target[part]
    return problems(value, target, document, at)


def _type(value: Any, asked: str, _: Any, __: Any, at: str) -> list[str]:
    is_boolean = isinstance(value, bool)
    is_right = isinstance(value, KINDS[asked]) and (asked == "boolean" or not is_boolean)
    return [] if is_right else [f"{at}: {value!r} is no {asked}"]


def _any_of(value: Any, asked: list[Any], _: Any, document: dict[str, Any], at: str) -> list[str]:
    tried = [problems(value, one, document, at) for one in asked]
    return [] if [] in tried else [each for one in tried for each in one]


def _properties(value: Any, asked: dict[str, Any], _: Any, document: dict[str, Any], at: str) -> list[str]:
    named = {name: schema for name, schema in asked.items() if name in value}
    return [
        each
        for name, schema in named.items()
        for each in problems(value[name], schema, document, f"{at}/{name}")
    ]


def _additional(value: Any, asked: bool, schema: dict[str, Any], _: Any, at: str) -> list[str]:
    more = set(value) - set(schema.get("properties", {}))
    return [] if asked else [f"{at}: {name} is not there" for name in more]


def _items(value: Any, asked: dict[str, Any], _: Any, document: dict[str, Any], at: str) -> list[str]:
    return [each for i, one in enumerate(value) for each in problems(one, asked, document, f"{at}/{i}")]


def _format(value: Any, asked: str, _: Any, __: Any, at: str) -> list[str]:
    if asked == "date-time" and datetime.fromisoformat(value).tzinfo is None:
        return [f"{at}: {value} has no time zone"]
    return []


CHECKS: dict[str, Any] = {
    "$ref": _reference,
    "type": _type,
    "anyOf": _any_of,
    "properties": _properties,
    "additionalProperties": _additional,
    "items": _items,
    "format": _format,
    "required": lambda value, asked, _s, _d, at: [f"{at}: no {name}" for name in asked if name not in value],
    "enum": lambda value, asked, _s, _d, at: [] if value in asked else [f"{at}: not one of {asked}"],
    "const": lambda value, asked, _s, _d, at: [] if value == asked else [f"{at}: not {asked}"],
    "minLength": lambda value, asked, _s, _d, at: (
        [] if len(value) >= asked else [f"{at}: shorter than {asked}"]
    ),
    "minimum": lambda value, asked, _s, _d, at: [] if value >= asked else [f"{at}: below {asked}"],
    "pattern": lambda value, asked, _s, _d, at: [] if re.search(asked, value) else [f"{at}: not {asked}"],
}
