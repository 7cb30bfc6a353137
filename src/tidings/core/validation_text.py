"""What a model would have taken, in words of ours: pydantic's are about inputs, and what it wants is often not in them.

{"type": "int_parsing", "msg": "Input should be a valid integer, unable to parse ..."}    a whole number
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tidings.core.suggest import closest
from tidings.errors import InputError

WORDS = {
    "bool_parsing": "true or false",
    "bool_type": "true or false",
    "dict_type": "a table of names and values",
    "enum": "{expected}",
    "float_parsing": "a number",
    "float_type": "a number",
    "greater_than": "more than {gt}",
    "greater_than_equal": "{ge} or more",
    "int_from_float": "a whole number",
    "int_parsing": "a whole number",
    "int_parsing_size": "a whole number that is shorter",
    "int_type": "a whole number",
    "less_than": "less than {lt}",
    "less_than_equal": "{le} or less",
    "list_type": "a list",
    "literal_error": "{expected}",
    "model_attributes_type": "a JSON object",
    "model_type": "a table of names and values",
    "string_too_long": "at most {max_length} characters",
    "string_too_short": "at least {min_length} characters",
    "string_type": "a text",
    "tuple_type": "a list",
}
"""By the type of the error. What is not here is said as pydantic says it."""


def expected(found: Mapping[str, Any]) -> str:
    """What would be accepted in the place of what a model refused: one of its `errors()`."""
    words = WORDS.get(found["type"])
    if words is None:
        said: str = found["msg"]
        return said.removeprefix("Value error, ")
    return words.format(**found.get("ctx", {}))


def no_such(what: str, name: str, known: Sequence[str]) -> InputError:
    """A parameter or a member that there is not, with those that there are."""
    meant = closest(name, known)
    hint = f"did you mean '{meant}'?" if meant else None
    return InputError(f"there is no {what} '{name[:200]}'", accepted=", ".join(known) or None, hint=hint)
