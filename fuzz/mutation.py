"""Blind mutation of inputs, reproducible from a seed of the generator.

Coverage guidance finds new paths in Python code. Blind mutation finds failures that guidance misses: in C and compiled
kernels, which give no feedback, and in inputs with many repetitions, which show superlinear time and memory.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from random import Random

LONGEST = 65_536
MOST_TOKENS = 2_000

_TOKEN = re.compile(rb"[A-Za-z_][\w:.-]*|[0-9]+|[^\w\s]{1,3}")
_BYTES = (
    bytes(range(0x20)) + b"\x7f\x80\xbf\xc0\xc3\xe2\xed\xef\xf0\xf4\xff\"'<>&{}[]():;,./\\#@?!=*+-_%$^|~`09aZ"
)
_PIECES = (
    b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff", "\u2028".encode(), "\ufeff".encode(), "\u0301".encode(), "\u202e".encode(),
    "\U0001f600".encode(), b"\xed\xa0\x80", b"\\ud800", b"\\u0000", b"<!DOCTYPE a [<!ENTITY x 'y'>]>", b"&x;", b"<![CDATA[",
    b"]]>", b"-->", b"<?xml version='1.0' encoding='utf-16'?>", b"9" * 20, b"9" * 5_000, b"-9223372036854775809", b"1e999",
    b"-0", b"NaN", b"Infinity", b"0001-01-01T00:00:00+14:00", b"9999-12-31T23:59:60Z", b"\r", b"\r\n", b"\n", b"\0",
)  # fmt: skip


def tokens_in(seeds: Iterable[bytes]) -> list[bytes]:
    """Return the words and symbols of the seeds, the dictionary of a target."""
    tokens = dict.fromkeys(
        token for seed in seeds for token in _TOKEN.findall(seed[:LONGEST]) if len(token) <= 60
    )
    return [*list(tokens)[:MOST_TOKENS], *_PIECES]


def inputs(seeds: Sequence[bytes], random: Random) -> Iterator[bytes]:
    """Yield the empty input, the seeds, and then endless mutations of the seeds."""
    yield b""
    yield from seeds
    tokens = tokens_in(seeds)
    while True:
        data = random.choice(seeds)
        for _ in range(1 + int(random.expovariate(0.5))):
            data = random.choice(_MUTATIONS)(data, random, tokens, seeds)[:LONGEST]
        yield data


def _span(data: bytes, random: Random, longest: int = 40) -> tuple[int, int]:
    start = random.randint(0, len(data))
    return start, min(len(data), start + random.randint(0, longest))


Mutation = Callable[[bytes, Random, list[bytes], Sequence[bytes]], bytes]


def _cut(data: bytes, random: Random, _: list[bytes], __: Sequence[bytes]) -> bytes:
    start, end = _span(data, random)
    return data[:start] + data[end:]


def _truncate(data: bytes, random: Random, _: list[bytes], __: Sequence[bytes]) -> bytes:
    return data[: random.randint(0, len(data))]


def _put_byte(data: bytes, random: Random, _: list[bytes], __: Sequence[bytes]) -> bytes:
    start, end = _span(data, random, 1)
    return data[:start] + bytes([random.choice(_BYTES)]) + data[end:]


def _flip(data: bytes, random: Random, _: list[bytes], __: Sequence[bytes]) -> bytes:
    if not data:
        return data
    at = random.randrange(len(data))
    return data[:at] + bytes([data[at] ^ 1 << random.randrange(8)]) + data[at + 1 :]


def _put_token(data: bytes, random: Random, tokens: list[bytes], _: Sequence[bytes]) -> bytes:
    start, end = _span(data, random, 8) if random.random() < 0.5 else (random.randint(0, len(data)),) * 2
    return data[:start] + random.choice(tokens) + data[end:]


def _replace_token(data: bytes, random: Random, tokens: list[bytes], _: Sequence[bytes]) -> bytes:
    tokens_found = list(_TOKEN.finditer(data[:LONGEST]))
    if not tokens_found:
        return data
    token = random.choice(tokens_found)
    return data[: token.start()] + random.choice(tokens) + data[token.end() :]


def _repeat(data: bytes, random: Random, _: list[bytes], __: Sequence[bytes]) -> bytes:
    """Repeat a piece many times, which nests or lists it."""
    start, end = _span(data, random)
    times = 2 ** random.randint(1, 12 if random.random() < 0.1 else 4)
    return data[:start] + data[start:end] * times + data[end:]


def _splice(data: bytes, random: Random, _: list[bytes], seeds: Sequence[bytes]) -> bytes:
    other = random.choice(seeds)
    start, end = _span(other, random, 400)
    at = random.randint(0, len(data))
    return data[:at] + other[start:end] + data[at:]


def _move(data: bytes, random: Random, _: list[bytes], __: Sequence[bytes]) -> bytes:
    start, end = _span(data, random)
    rest = data[:start] + data[end:]
    at = random.randint(0, len(rest))
    return rest[:at] + data[start:end] + rest[at:]


_MUTATIONS: tuple[Mutation, ...] = (
    _cut, _truncate, _put_byte, _put_byte, _flip, _put_token, _put_token, _replace_token, _replace_token, _repeat, _splice, _move,
)  # fmt: skip
