"""Names and texts in SQL: quoted, of a length that databases take, and ours told from those of others."""

from __future__ import annotations

import re
from collections.abc import Iterable
from hashlib import sha256

from tidings.core.suggest import printable

NAME_PREFIX = "tidings_"
"""Everything that is installed begins with it, and nothing else is ever touched."""

MAX_NAME_LENGTH = 60
"""PostgreSQL cuts names after 63 bytes without a word; two that differ behind that would be one."""

MAX_COMMENT_LENGTH = 300


def quote_name(name: str) -> str:
    """A name of the user's, whatever it is: `"order"`, or with a schema `"sales"."order"`."""
    return ".".join('"' + part.replace('"', '""') + '"' for part in name.split("."))


def quote_literal(value: str | int | None) -> str:
    """A value as SQL writes it."""
    if value is None:
        return "NULL"
    return str(value) if isinstance(value, int) else "'" + value.replace("'", "''") + "'"


def quote_literals(values: Iterable[str | int]) -> str:
    return ", ".join(quote_literal(value) for value in values)


def build_name(*parts: str) -> str:
    """A name of ours that says what it is about: `tidings_used_in_linked`.

    What is too long or has other letters gets a hash of all of it, so that two things never share a name.
    """
    whole = "_".join(parts)
    plain = re.sub(r"[^a-z0-9_]+", "_", whole.lower())
    if plain == whole and len(NAME_PREFIX + plain) <= MAX_NAME_LENGTH:
        return NAME_PREFIX + plain
    digest = sha256("|".join(parts).encode()).hexdigest()[:8]
    return f"{NAME_PREFIX}{plain[: MAX_NAME_LENGTH - len(NAME_PREFIX) - 9]}_{digest}"


def indent_sql(sql: str, by: int = 4) -> str:
    return "\n".join(" " * by + line if line else line for line in sql.split("\n"))


def format_comment(words: str) -> str:
    """One line, whatever names are in it: what is behind a line break would be a statement."""
    return f"-- {printable(words, MAX_COMMENT_LENGTH)}"
