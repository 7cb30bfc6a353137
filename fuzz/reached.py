"""Which modules of Tidings the samples of the targets run through."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

import tidings
from fuzz.execution import FEW, warm_up
from fuzz.registry import TARGETS

ROOT = Path(tidings.__file__).parent


def reached() -> Iterator[str]:
    """The modules, relative to the package, in which a function ran."""
    seen: set[str] = set()

    def note(frame: FrameType, event: str, _: object) -> None:
        if event == "call":
            seen.add(frame.f_code.co_filename)

    for target in TARGETS.values():
        warm_up(target)
        for sample in target.seeds[:FEW]:
            sys.setprofile(note)
            try:
                target.run(sample)
            except target.accepts:
                continue
            finally:
                sys.setprofile(None)
    for name in sorted(seen):
        if name.startswith(str(ROOT)):
            yield Path(name).relative_to(ROOT).as_posix()


if __name__ == "__main__":
    print(*reached(), sep="\n")
