"""Imports point one way, and heavy libraries stay in their one folder: the contracts of pyproject.toml hold."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent


def test_layers() -> None:
    linter = Path(sys.executable).with_name("lint-imports")
    done = subprocess.run([linter], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_help_imports_nothing_heavy() -> None:
    """`tidings --help` must answer at once: none of these may be imported to print it."""
    heavy = {"numba", "numpy", "pyspark", "pyarrow", "pandas", "sqlalchemy", "lark"}
    code = "import sys, tidings; from tidings.interfaces.cli import main; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not heavy & set(done.stdout.split())
