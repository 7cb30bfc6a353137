"""Lists the modules of Tidings that the samples of the targets execute."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

import tidings
from fuzz.execution import SAMPLES, warm_up
from fuzz.registry import TARGETS

ROOT = Path(tidings.__file__).parent


def reached() -> Iterator[str]:
    """Yield the modules, relative to the package, in which a function ran."""
    files: set[str] = set()

    def record(frame: FrameType, event: str, _: object) -> None:
        if event == "call":
            files.add(frame.f_code.co_filename)

    for target in TARGETS.values():
        warm_up(target)
        for sample in target.seeds[:SAMPLES]:
            sys.setprofile(record)
            try:
                target.run(sample)
            except target.accepts:
                continue
            finally:
                sys.setprofile(None)
    for name in sorted(files):
        if name.startswith(str(ROOT)):
            yield Path(name).relative_to(ROOT).as_posix()


if __name__ == "__main__":
    print(*reached(), sep="\n")
