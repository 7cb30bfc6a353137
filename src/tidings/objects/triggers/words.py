"""Names and texts in SQL: quoted, of a length that databases take, and ours told from those of others."""

from __future__ import annotations

import re
from collections.abc import Iterable
from hashlib import sha256

from tidings.schema.names import safe

PREFIX = "tidings_"
"""Everything that is installed begins with it, and nothing else is ever touched."""

LONGEST = 60
"""PostgreSQL cuts names after 63 bytes without a word; two that differ behind that would be one."""

LONGEST_COMMENT = 300


def quoted(name: str) -> str:
    """A name of the user's, whatever it is: `"order"`, or with a schema `"sales"."order"`."""
    return ".".join('"' + part.replace('"', '""') + '"' for part in name.split("."))


def text(value: str | int | None) -> str:
    """A value as SQL writes it."""
    if value is None:
        return "NULL"
    return str(value) if isinstance(value, int) else "'" + value.replace("'", "''") + "'"


def texts(values: Iterable[str | int]) -> str:
    return ", ".join(text(value) for value in values)


def ours(*parts: str) -> str:
    """A name of ours that says what it is about: `tidings_used_in_linked`.

    What is too long or has other letters gets a hash of all of it, so that two things never share a name.
    """
    whole = "_".join(parts)
    plain = re.sub(r"[^a-z0-9_]+", "_", whole.lower())
    if plain == whole and len(PREFIX + plain) <= LONGEST:
        return PREFIX + plain
    return f"{PREFIX}{plain[: LONGEST - len(PREFIX) - 9]}_{sha256('|'.join(parts).encode()).hexdigest()[:8]}"


def indented(sql: str, by: int = 4) -> str:
    return "\n".join(" " * by + line if line else line for line in sql.split("\n"))


def comment(words: str) -> str:
    """One line, whatever names are in it: what is behind a line break would be a statement."""
    return f"-- {safe(words, LONGEST_COMMENT)}"
