"""Imports point one way, and heavy libraries stay in their one folder: the contracts of pyproject.toml hold."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from tests.support.paths import ROOT


def test_layers() -> None:
    linter = Path(sys.executable).with_name("lint-imports")
    done = subprocess.run([linter], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_helpers_of_kernels_are_called_by_kernels_only() -> None:
    """They have no entrance for Python: calling one ends the process without a word."""
    kernels = ROOT / "src/tidings/matching/kernels"
    helpers = {f"{file.stem}.{name}" for file in kernels.rglob("*.py") for name in inlined(file)}
    assert {"match._match_one", "codes.number_code"} <= helpers
    files = [file for folder in ("src", "tests", "benchmarks") for file in (ROOT / folder).rglob("*.py")]
    others = [
        file
        for file in files
        if kernels not in file.parents and "tidings.matching.kernels" in file.read_text()
    ]
    assert len(others) > 10
    for file in others:
        assert not helpers & set(used_of_kernels(file)), file


def inlined(file: Path) -> Iterator[str]:
    for node in ast.parse(file.read_text()).body:
        if isinstance(node, ast.FunctionDef) and "inlined" in map(ast.unparse, node.decorator_list):
            yield node.name


def used_of_kernels(file: Path) -> Iterator[str]:
    """What a module imports from kernels, or uses of kernels it imports: `module.name`."""
    nodes = list(ast.walk(ast.parse(file.read_text())))
    imports = [node for node in nodes if isinstance(node, ast.ImportFrom) and node.module]
    known = {
        alias.asname or alias.name: alias.name
        for node in imports
        for alias in node.names
        if str(node.module).startswith("tidings.matching.kernels")
    }
    for node in imports:
        if str(node.module).startswith("tidings.matching.kernels."):
            yield from (f"{str(node.module).rpartition('.')[2]}.{alias.name}" for alias in node.names)
    for node in nodes:
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in known:
            yield f"{known[node.value.id]}.{node.attr}"


def test_help_imports_nothing_heavy() -> None:
    """`tidings --help` must answer at once: none of these may be imported to print it."""
    heavy = {"numba", "numpy", "pyspark", "pyarrow", "pandas", "sqlalchemy", "lark"}
    code = "import sys, tidings; from tidings.cli import main; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not heavy & set(done.stdout.split())


def test_the_client_imports_nothing_of_the_engine() -> None:
    """A program that uses the service needs neither Spark nor a database."""
    heavy = {
        "numba",
        "numpy",
        "pyspark",
        "pyarrow",
        "pandas",
        "sqlalchemy",
        "lark",
        "lxml",
        "fastapi",
        "pydantic",
    }
    code = "import sys, tidings.client; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert not heavy & loaded
    assert len([name for name in loaded if name.startswith("tidings.")]) < 25
