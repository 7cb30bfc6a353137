"""Coverage-guided fuzzing with Atheris, which mutates inputs towards code that was not reached yet.

It is a separate program, because Python code is instrumented during import. Compiled kernels are excluded: Numba reads
their bytecode.
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
EXCLUDED = ("kernels", "matching", "store")
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
"""Crashes are detected from outside the process, for all engines."""


def is_available() -> bool:
    """Return whether Atheris is installed: some systems have no wheels."""
    return find_spec("atheris") is not None


def main() -> int:
    import atheris  # noqa: PLC0415 - this module is also imported without Atheris

    with (
        redirect_stderr(StringIO()),
        atheris.instrument_imports(include=INSTRUMENTED, exclude=list(_excluded_modules())),
    ):
        from fuzz.__main__ import arguments, run_each  # noqa: PLC0415
        from fuzz.runner import run_guided  # noqa: PLC0415
    options = arguments()
    return run_each(
        options, lambda target, folder: run_guided(target, folder, options.seed, options.guided_seconds)
    )


def _excluded_modules() -> Iterator[str]:
    """Yield the names of the modules in the excluded folders."""
    root = Path(find_spec("tidings").origin).parent  # type: ignore[union-attr,arg-type]
    for folder in EXCLUDED:
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
