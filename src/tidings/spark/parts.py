"""Files of the batch job that hold several publications: the graphs of TriG, N-Quads and JSON-LD, the items of feeds.

They are taken apart inside the task, because only who reads a file knows what is in it, and called by their file and a
number: `days.trig:1`, `days.trig:2`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tidings.errors import PublicationError
from tidings.publications.rdf_media_types import JSON_LD
from tidings.publications.rdf_parts import N_TRIPLES, SEVERAL, parts_of
from tidings.spark.blocks import BLOCK_BYTES, Block, together


@dataclass(frozen=True, slots=True)
class Refused:
    """A file that cannot be taken apart, and why."""

    file: str
    problem: PublicationError


def taken_apart(block: Block) -> Iterator[Block | Refused]:
    """The block itself, or what is in its files if they hold several, in blocks of some megabytes."""
    if block.media_type not in SEVERAL and block.media_type != JSON_LD:
        yield block
        return
    bodies: list[bytes] = []
    names: list[str] = []
    size = 0
    for place, name in enumerate(block.files):
        try:
            parts = list(parts_of(block.body(place), block.media_type))
        except PublicationError as problem:
            yield Refused(name, problem)
            continue
        bodies += parts
        names += _names(name, len(parts), block.media_type)
        size += sum(map(len, parts))
        if size >= BLOCK_BYTES:
            yield together(bodies, names, N_TRIPLES)
            bodies, names, size = [], [], 0
    if bodies:
        yield together(bodies, names, N_TRIPLES)


def _names(file: str, count: int, media_type: str) -> list[str]:
    """A JSON-LD file is one graph mostly, and is called as any other file is then."""
    if media_type == JSON_LD and count == 1:
        return [file]
    return [f"{file}:{number}" for number in range(1, count + 1)]
