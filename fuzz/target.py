"""A fuzz target: a parser, its seed inputs, and the errors it may raise."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from tidings.errors import TidingsError

Run = Callable[[bytes], object]

SEPARATOR = b"\0"
"""Separator of the fields of an input for parsers with several arguments."""


@dataclass(frozen=True, slots=True)
class Target:
    """A parser under test. `run` takes any bytes: it returns, or raises one of `accepts`, within the limits."""

    name: str
    run: Run
    seeds: tuple[bytes, ...]
    accepts: tuple[type[Exception], ...] = (TidingsError,)


def text_of(data: bytes) -> str:
    """Decode bytes to text. Lone surrogates are allowed, as in JSON and on a command line."""
    try:
        return data.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return data.decode("latin-1")


def fields_of(data: bytes, count: int) -> list[bytes]:
    """Split an input into `count` fields; missing ones are empty."""
    parts = data.split(SEPARATOR, count - 1)
    return parts + [b""] * (count - len(parts))


def texts_of(data: bytes, count: int) -> list[str]:
    return [text_of(part) for part in fields_of(data, count)]


def of_text(parse: Callable[[str], object]) -> Run:
    """Return a target function for a parser of text."""
    return lambda data: parse(text_of(data))


def joined(*parts: str | bytes) -> bytes:
    """Return a seed of several fields."""
    return SEPARATOR.join(part.encode() if isinstance(part, str) else part for part in parts)


def encoded(texts: Iterable[str]) -> tuple[bytes, ...]:
    return tuple(text.encode() for text in texts)
