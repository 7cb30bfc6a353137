"""Peers in other languages: fetched by their own package managers, compiled once, kept outside the repository.

They are kept in the folder TIDINGS_BENCH_CACHE names, or `tidings-bench` in the user's cache folder. Where they come
from is up to the machine's settings of Maven and Go. What is missing is said in one sentence, and not tried again in
the same run.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tarfile
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from benchmarks.engine import NotHere

JAVA = Path(__file__).parent / "java"
GO = Path(__file__).parent / "go"
PATIENCE = 600.0
POM = """<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>tidings</groupId><artifactId>peer</artifactId><version>1</version>
  <dependencies><dependency>
    <groupId>{group}</groupId><artifactId>{artifact}</artifactId><version>{version}</version>
  </dependency></dependencies>
</project>
"""

_missing: dict[Path, str] = {}


def java_classpath(artifact: str, main: str) -> str:
    """The class path of a driver in `java`, compiled against an artifact `group:name:version` and what that needs."""
    sources = [JAVA / "Driver.java", JAVA / f"{main}.java"]
    jars = java_jars(artifact)
    classes = _kept(
        f"{main}-{_digest(sources, artifact)}", lambda folder: _compile_java(sources, jars, folder)
    )
    return f"{classes}{os.pathsep}{jars}/*"


def java_jars(artifact: str) -> Path:
    """A folder with the jars of an artifact `group:name:version` and of what that needs."""
    return _kept(artifact.replace(":", "-"), lambda folder: _fetch_jars(artifact, folder))


def _fetch_jars(artifact: str, folder: Path) -> None:
    group, name, version = artifact.split(":")
    pom = folder / "pom.xml"
    pom.write_text(POM.format(group=group, artifact=name, version=version))
    goal: list[str | Path] = [
        "dependency:copy-dependencies",
        f"-DoutputDirectory={folder}",
        "-DincludeScope=runtime",
    ]
    _run([tool("mvn"), "-B", "-q", "-f", pom, *goal], f"Maven could not fetch {artifact}")


def maven_archive(artifact: str) -> Path:
    """The file of one artifact `group:name:version:packaging:classifier`."""
    folder = _kept(artifact.replace(":", "-"), lambda made: _fetch_archive(artifact, made))
    return next(folder.iterdir())


def _fetch_archive(artifact: str, folder: Path) -> None:
    goal = ["dependency:copy", f"-Dartifact={artifact}", f"-DoutputDirectory={folder}"]
    _run([tool("mvn"), "-B", "-q", *goal], f"Maven could not fetch {artifact}", folder)


def npm_package(package: str) -> Path:
    """The files of an npm package `name@version`, as they are published; nothing of it is run."""
    return _kept(f"npm-{package.replace('/', '-')}", lambda made: _fetch_package(package, made)) / "package"


def _fetch_package(package: str, folder: Path) -> None:
    command: list[str | Path] = [
        tool("npm"),
        "pack",
        "--ignore-scripts",
        "--pack-destination",
        folder,
        package,
    ]
    _run(command, f"npm could not fetch {package}", folder)
    archive = next(folder.glob("*.tgz"))
    with tarfile.open(archive) as packed:
        packed.extractall(folder, filter="data")
    archive.unlink()


def _compile_java(sources: Sequence[Path], jars: Path, folder: Path) -> None:
    command: list[str | Path] = [tool("javac"), "-cp", f"{jars}/*", "-d", folder, *sources]
    _run(command, "javac could not compile the driver")


def go_program(name: str) -> Path:
    """A program of `go`, with the modules that its go.mod asks for. Go writes its lock file beside the copy."""
    source = GO / name
    files = sorted(source.iterdir())
    return _kept(f"{name}-{_digest(files)}", lambda folder: _compile_go(source, folder)) / name


def _compile_go(source: Path, folder: Path) -> None:
    go = tool("go")
    shutil.copytree(source, folder, dirs_exist_ok=True)
    settings = {**os.environ, "GOFLAGS": "-mod=mod", "GOTOOLCHAIN": "local"}
    _run([go, "mod", "download"], f"Go could not fetch what {source.name} needs", folder, settings)
    _run(
        [go, "build", "-o", folder / source.name, "."], f"Go could not build {source.name}", folder, settings
    )


def tool(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        raise NotHere(f"no {name} on the PATH")
    return found


def kept_in() -> Path:
    settled = os.environ.get("TIDINGS_BENCH_CACHE")
    caches = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return Path(settled) if settled else caches / "tidings-bench"


def _kept(name: str, make: Callable[[Path], None]) -> Path:
    """The folder of that name in the cache; made in another place first, so that it is there whole or not at all."""
    place = kept_in() / name
    if place in _missing:
        raise NotHere(_missing[place])
    if not place.exists():
        place.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=place.parent) as elsewhere:
            made = Path(elsewhere) / name
            made.mkdir()
            try:
                make(made)
            except NotHere as missing:
                _missing[place] = str(missing)
                raise
            made.rename(place)
    return place


def _run(
    command: Sequence[str | Path],
    failed: str,
    folder: Path | None = None,
    settings: dict[str, str] | None = None,
) -> None:
    try:
        done = subprocess.run(
            list(map(str, command)),
            cwd=folder,
            env=settings,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
        )
    except subprocess.TimeoutExpired as late:
        raise NotHere(f"{failed} in {PATIENCE:.0f} s") from late
    if done.returncode:
        raise NotHere(f"{failed} ({_first_error(done.stdout + done.stderr)})")


def _first_error(output: str) -> str:
    """The line that says most, without addresses: where a machine fetches from is its own business."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    said = next((line for line in lines if "error" in line.lower()), lines[-1] if lines else "no message")
    return " ".join("..." if "://" in word else word for word in said.split())[:200]


def _digest(files: Sequence[Path], *also: str) -> str:
    """What was compiled from other sources is not used again."""
    content = b"".join(path.read_bytes() for path in files) + "".join(also).encode()
    return hashlib.sha256(content).hexdigest()[:12]
