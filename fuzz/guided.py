"""The targets under Atheris, which mutates towards code that no input has reached yet.

A program of its own, because Python code is instrumented while it is imported. Compiled kernels are left alone: Numba
reads their bytecode.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import redirect_stderr
from importlib.util import find_spec
from io import StringIO
from pathlib import Path

from fuzz.target import Target

INSTRUMENTED = ["tidings", "lark", "yaml", "tomllib", "csv", "html", "email", "xmlrpc"]
LEFT_ALONE = ("kernels", "matching", "store")
LONGEST = 4_096

_SILENT = (
    "-timeout=0",
    "-rss_limit_mb=0",
    "-malloc_limit_mb=0",
    "-verbosity=0",
    "-detect_leaks=0",
    "-print_final_stats=0",
)
_UNHANDLED = tuple(f"-handle_{name}=0" for name in ("segv", "bus", "abrt", "ill", "fpe"))
"""What ends the process is seen from outside, with any engine."""


def is_available() -> bool:
    """Whether Atheris is installed: there are no wheels for some systems."""
    return find_spec("atheris") is not None


def main() -> int:
    import atheris  # noqa: PLC0415 - this module is imported without it, too

    with (
        redirect_stderr(StringIO()),
        atheris.instrument_imports(include=INSTRUMENTED, exclude=list(_left_alone())),
    ):
        from fuzz.__main__ import arguments, run_each  # noqa: PLC0415
        from fuzz.runner import run_guided  # noqa: PLC0415
    given = arguments()
    return run_each(
        given, lambda target, folder: run_guided(target, folder, given.seed, given.guided_seconds)
    )


def _left_alone() -> Iterator[str]:
    """The modules of some folders, each by its name, as Atheris wants them."""
    root = Path(find_spec("tidings").origin).parent  # type: ignore[union-attr,arg-type]
    for folder in LEFT_ALONE:
        for path in (root / folder).rglob("*.py"):
            yield ".".join(("tidings", *path.relative_to(root).with_suffix("").parts)).removesuffix(
                ".__init__"
            )


def explore(target: Target, folder: Path, seed: int, seconds: float) -> None:
    """Run one target in this process until its CPU time is used up. Does not return."""
    import atheris  # noqa: PLC0415

    from fuzz.execution import Executor, confine, warm_up  # noqa: PLC0415

    corpus = folder / "corpus"
    corpus.mkdir(exist_ok=True)
    for number, data in enumerate(target.seeds):
        (corpus / f"seed-{number}").write_bytes(data[:LONGEST])
    words = _dictionary(target, folder)
    options = [str(corpus), f"-dict={words}", f"-max_len={LONGEST}", f"-seed={seed}", *_SILENT, *_UNHANDLED]
    warm_up(target)
    confine(folder / "stacks")
    atheris.Setup([sys.argv[0], *options], Executor(target, folder, seconds))
    atheris.Fuzz()


def _dictionary(target: Target, folder: Path) -> Path:
    from fuzz.mutation import tokens_in  # noqa: PLC0415

    path = folder / "dictionary"
    words = (
        "".join(f"\\x{byte:02x}" for byte in token) for token in tokens_in(target.seeds) if len(token) <= 60
    )
    path.write_text("".join(f'"{word}"\n' for word in words))
    return path


if __name__ == "__main__":
    sys.exit(main())
