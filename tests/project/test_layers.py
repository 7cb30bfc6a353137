"""The import contracts of pyproject.toml: layers point one way, and heavy libraries stay in one folder."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from tests.support.paths import ROOT


def test_import_linter_finds_no_violation() -> None:
    linter = Path(sys.executable).with_name("lint-imports")
    process = subprocess.run([linter], cwd=ROOT, capture_output=True, text=True, check=False)
    assert process.returncode == 0, process.stdout + process.stderr


def test_kernel_helpers_are_called_by_kernels_only() -> None:
    """They have no Python entry point: calling one ends the process silently."""
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
    """Yield what a module imports from kernels, or uses of imported kernels, as `module.name`."""
    nodes = list(ast.walk(ast.parse(file.read_text())))
    imports = [node for node in nodes if isinstance(node, ast.ImportFrom) and node.module]
    aliases = {
        alias.asname or alias.name: alias.name
        for node in imports
        for alias in node.names
        if str(node.module).startswith("tidings.matching.kernels")
    }
    for node in imports:
        if str(node.module).startswith("tidings.matching.kernels."):
            yield from (f"{str(node.module).rpartition('.')[2]}.{alias.name}" for alias in node.names)
    for node in nodes:
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in aliases:
            yield f"{aliases[node.value.id]}.{node.attr}"


def test_help_imports_no_heavy_library() -> None:
    """`tidings --help` must answer at once, so it must not import any of these."""
    heavy = {"numba", "numpy", "pyspark", "pyarrow", "pandas", "sqlalchemy", "lark"}
    code = "import sys, tidings; from tidings.cli import main; print(*sys.modules)"
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not heavy & set(process.stdout.split())


def test_client_imports_no_engine() -> None:
    """A program that uses the client needs neither Spark nor a database."""
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
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(process.stdout.split())
    assert not heavy & loaded
    assert len([name for name in loaded if name.startswith("tidings.")]) < 25
