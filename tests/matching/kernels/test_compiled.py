"""Cached kernels on disk: code of another version is not used."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tidings.matching.kernels import compiled

KERNEL = """
from small.compiled import kernel
from small.helper import added

@kernel
def run(value):
    return added(value)
"""
HELPER = """
from small.compiled import inlined

@inlined
def added(value):
    return value + {}
"""


def test_compiled_changed_helper_in_other_file_recompiles_kernel(tmp_path: Path) -> None:
    package = tmp_path / "small"
    package.mkdir()
    source = Path(compiled.__file__).read_text()
    files = {"__init__": "", "compiled": source, "kernel": KERNEL, "helper": HELPER.format(1)}
    for name, text in files.items():
        (package / f"{name}.py").write_text(text)
    command = [sys.executable, "-c", "from small.kernel import run; print(run(5))"]

    def call() -> str:
        return subprocess.run(
            command, cwd=tmp_path, capture_output=True, text=True, check=True
        ).stdout.strip()

    assert call() == call() == "6"
    assert list((package / "__pycache__").glob("kernel.run-*.nbi")), "it is cached"
    (package / "helper.py").write_text(HELPER.format(2))
    assert call() == "7"
