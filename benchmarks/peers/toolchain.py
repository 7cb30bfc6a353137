"""Drivers of peers in Java and Go, compiled on first use and cached (see `tests.support.packages`)."""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Sequence
from pathlib import Path

from tests.support.packages import cached_folder, find_tool, java_jars, run_tool

JAVA = Path(__file__).parent / "java"
GO = Path(__file__).parent / "go"


def java_classpath(artifact: str, main: str) -> str:
    """Return the class path of a driver in `java`, compiled against an artifact `group:name:version`."""
    sources = [JAVA / "Driver.java", JAVA / f"{main}.java"]
    jars = java_jars(artifact)
    name = f"{main}-{_digest(sources, artifact)}"
    classes = cached_folder(name, lambda folder: _compile_java(sources, jars, folder))
    return f"{classes}{os.pathsep}{jars}/*"


def _compile_java(sources: Sequence[Path], jars: Path, folder: Path) -> None:
    command: list[str | Path] = [find_tool("javac"), "-cp", f"{jars}/*", "-d", folder, *sources]
    run_tool(command, "javac could not compile the driver")


def go_program(name: str) -> Path:
    """Return a compiled program of `go`. Its modules are downloaded; Go writes its lock file beside the copy."""
    source = GO / name
    files = sorted(source.iterdir())
    return cached_folder(f"{name}-{_digest(files)}", lambda folder: _compile_go(source, folder)) / name


def _compile_go(source: Path, folder: Path) -> None:
    go, name = find_tool("go"), source.name
    shutil.copytree(source, folder, dirs_exist_ok=True)
    environment = {**os.environ, "GOFLAGS": "-mod=mod", "GOTOOLCHAIN": "local"}
    run_tool([go, "mod", "download"], f"Go could not download the modules of {name}", folder, environment)
    run_tool([go, "build", "-o", folder / name, "."], f"Go could not build {name}", folder, environment)


def _digest(files: Sequence[Path], *parts: str) -> str:
    """Return a hash of the sources, so that a changed driver is compiled again."""
    content = b"".join(path.read_bytes() for path in files) + "".join(parts).encode()
    return hashlib.sha256(content).hexdigest()[:12]
