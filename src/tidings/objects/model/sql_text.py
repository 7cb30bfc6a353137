"""SQL names and literals: quoting, length limits, and the prefix of everything that Tidings installs."""

from __future__ import annotations

import re
from collections.abc import Iterable
from hashlib import sha256

from tidings.core.suggest import printable

NAME_PREFIX = "tidings_"
"""Prefix of everything that is installed; nothing else is ever changed."""

MAX_NAME_LENGTH = 60
"""PostgreSQL silently truncates names after 63 bytes; two names that differ only behind that would be one."""

MAX_COMMENT_LENGTH = 300


def quote_name(name: str) -> str:
    """Quote a name of the user's: `"order"`, or with a schema `"sales"."order"`."""
    return ".".join('"' + part.replace('"', '""') + '"' for part in name.split("."))


def quote_literal(value: str | int | None) -> str:
    """Write a value as an SQL literal."""
    if value is None:
        return "NULL"
    return str(value) if isinstance(value, int) else "'" + value.replace("'", "''") + "'"


def quote_literals(values: Iterable[str | int]) -> str:
    return ", ".join(quote_literal(value) for value in values)


def build_name(*parts: str) -> str:
    """Build a descriptive name with our prefix: `tidings_used_in_linked`.

    A name that is too long or has other characters ends with a hash of all parts, so that names never collide.
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
    """Write a comment of one line: a line break in a name would turn the rest into a statement."""
    return f"-- {printable(words, MAX_COMMENT_LENGTH)}"
