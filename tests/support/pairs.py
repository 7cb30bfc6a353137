"""Pairs of input and expected output, in text files.

# a comment
> the input, one line or several
the output, one line or several, up to an empty line
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Pair:
    given: str
    expected: str

    def __str__(self) -> str:
        return self.given


def read_pairs(file: Path) -> list[Pair]:
    """Read the pairs of a file; lines that underline an error keep their spaces."""
    blocks = file.read_text(encoding="utf-8").split("\n\n")
    return [_pair(lines) for block in blocks if (lines := _lines(block))]


def _lines(block: str) -> list[str]:
    return [line for line in block.split("\n") if line and not line.startswith("#")]


def _pair(lines: list[str]) -> Pair:
    given = [line[1:].removeprefix(" ") for line in lines if line.startswith(">")]
    expected = [line.rstrip() for line in lines if not line.startswith(">")]
    return Pair("\n".join(given), "\n".join(expected))


def outcome(text: object) -> str:
    """Format an output as in the files."""
    return "\n".join(line.rstrip() for line in str(text).split("\n") if line.strip())
