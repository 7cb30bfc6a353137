"""Validation of values against a JSON Schema, limited to the keywords of the API; other keywords raise an error."""

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
ANNOTATIONS = {"title", "description", "default"}


def problems(value: Any, schema: dict[str, Any], document: dict[str, Any], at: str = "") -> list[str]:
    """Return the violations of a schema by a value, each with its place."""
    if "type" in schema and (wrong := _type(value, schema["type"], schema, document, at)):
        return wrong
    violations: list[str] = []
    for word, required in schema.items():
        if word not in ANNOTATIONS:
            violations += CHECKS[word](value, required, schema, document, at)
    return violations


def _reference(value: Any, required: str, _: Any, document: dict[str, Any], at: str) -> list[str]:
    target: Any = document
    for part in required.removeprefix("#/").split("/"):
        target = target[part]
    return problems(value, target, document, at)


def _type(value: Any, required: str, _: Any, __: Any, at: str) -> list[str]:
    is_boolean = isinstance(value, bool)
    is_right = isinstance(value, KINDS[required]) and (required == "boolean" or not is_boolean)
    return [] if is_right else [f"{at}: {value!r} is no {required}"]


def _any_of(value: Any, required: list[Any], _: Any, document: dict[str, Any], at: str) -> list[str]:
    tried = [problems(value, one, document, at) for one in required]
    return [] if [] in tried else [each for one in tried for each in one]


def _properties(value: Any, required: dict[str, Any], _: Any, document: dict[str, Any], at: str) -> list[str]:
    named = {name: schema for name, schema in required.items() if name in value}
    return [
        each
        for name, schema in named.items()
        for each in problems(value[name], schema, document, f"{at}/{name}")
    ]


def _additional(value: Any, required: bool, schema: dict[str, Any], _: Any, at: str) -> list[str]:
    more = set(value) - set(schema.get("properties", {}))
    return [] if required else [f"{at}: {name} is not declared" for name in more]


def _items(value: Any, required: dict[str, Any], _: Any, document: dict[str, Any], at: str) -> list[str]:
    return [each for i, one in enumerate(value) for each in problems(one, required, document, f"{at}/{i}")]


def _format(value: Any, required: str, _: Any, __: Any, at: str) -> list[str]:
    if required == "date-time" and datetime.fromisoformat(value).tzinfo is None:
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
    "required": lambda value, required, _s, _d, at: [
        f"{at}: no {name}" for name in required if name not in value
    ],
    "enum": lambda value, required, _s, _d, at: [] if value in required else [f"{at}: not one of {required}"],
    "const": lambda value, required, _s, _d, at: [] if value == required else [f"{at}: not {required}"],
    "minLength": lambda value, required, _s, _d, at: (
        [] if len(value) >= required else [f"{at}: shorter than {required}"]
    ),
    "minimum": lambda value, required, _s, _d, at: [] if value >= required else [f"{at}: below {required}"],
    "pattern": lambda value, required, _s, _d, at: (
        [] if re.search(required, value) else [f"{at}: not {required}"]
    ),
}
