"""Inputs to start from, taken from the examples and the tests of this repository."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parent.parent
EXAMPLES, TESTS = ROOT / "examples", ROOT / "tests"


def files(pattern: str) -> tuple[bytes, ...]:
    """The content of the examples whose names match a pattern."""
    found = tuple(path.read_bytes() for path in sorted(EXAMPLES.glob(pattern)))
    assert found, f"no example matches {pattern}"
    return found


def cases(path: str) -> tuple[bytes, ...]:
    """The inputs of a file of cases: lines that begin with `> `, those that follow each other together."""
    text = (TESTS / path).read_text(encoding="utf-8")
    blocks = re.findall(r"(?:^> .*\n?)+", text, re.MULTILINE)
    assert blocks, f"no cases in {path}"
    return tuple(re.sub(r"^> ", "", block.rstrip("\n"), flags=re.MULTILINE).encode() for block in blocks)


def literals(path: str, pattern: str) -> tuple[bytes, ...]:
    """The byte strings of a test module that match a pattern."""
    text = (TESTS / path).read_text(encoding="utf-8")
    found = re.findall(r'b"((?:[^"\\\n]|\\.)*)"|b\'((?:[^\'\\\n]|\\.)*)\'', text)
    bodies = [(a or b).encode().decode("unicode_escape").encode("latin-1", "ignore") for a, b in found]
    return tuple(body for body in bodies if re.search(pattern.encode(), body))
