"""Text pairs: what goes in and what comes out, in files that read without Python.

# a remark
> the text, one line or several
what comes out, one line or several, up to an empty line
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
    """The pairs of a file; the drawing under an error keeps its spaces."""
    blocks = file.read_text(encoding="utf-8").split("\n\n")
    return [_pair(lines) for block in blocks if (lines := _lines(block))]


def _lines(block: str) -> list[str]:
    return [line for line in block.split("\n") if line and not line.startswith("#")]


def _pair(lines: list[str]) -> Pair:
    given = [line[1:].removeprefix(" ") for line in lines if line.startswith(">")]
    expected = [line.rstrip() for line in lines if not line.startswith(">")]
    return Pair("\n".join(given), "\n".join(expected))


def outcome(text: object) -> str:
    """What came out, as the files have it."""
    return "\n".join(line.rstrip() for line in str(text).split("\n") if line.strip())
