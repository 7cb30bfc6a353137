"""Seed inputs from the examples and tests of this repository."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parent.parent
EXAMPLES, TESTS = ROOT / "examples", ROOT / "tests"


def files(pattern: str) -> tuple[bytes, ...]:
    """Return the content of the examples whose names match a pattern."""
    contents = tuple(path.read_bytes() for path in sorted(EXAMPLES.glob(pattern)))
    assert contents, f"no example matches {pattern}"
    return contents


def cases(path: str) -> tuple[bytes, ...]:
    """Return the inputs of a file of cases: each is a block of consecutive lines that begin with `> `."""
    text = (TESTS / path).read_text(encoding="utf-8")
    blocks = re.findall(r"(?:^> .*\n?)+", text, re.MULTILINE)
    assert blocks, f"no cases in {path}"
    return tuple(re.sub(r"^> ", "", block.rstrip("\n"), flags=re.MULTILINE).encode() for block in blocks)


def literals(path: str, pattern: str) -> tuple[bytes, ...]:
    """Return the byte strings of a test module that match a pattern."""
    text = (TESTS / path).read_text(encoding="utf-8")
    matches = re.findall(r'b"((?:[^"\\\n]|\\.)*)"|b\'((?:[^\'\\\n]|\\.)*)\'', text)
    bodies = [(a or b).encode().decode("unicode_escape").encode("latin-1", "ignore") for a, b in matches]
    return tuple(body for body in bodies if re.search(pattern.encode(), body))
