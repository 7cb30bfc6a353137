"""Packages of other languages for tests and benchmarks: downloaded once, by their own package managers.

They are cached outside the repository, in the folder named by TIDINGS_BENCH_CACHE or in `tidings-bench` in the user's
cache folder. Maven, npm and Go download from wherever they are configured to. A download that failed is not tried
again in the same run.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tarfile
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

TIMEOUT_SECONDS = 600.0
POM = """<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>tidings</groupId><artifactId>peer</artifactId><version>1</version>
  <dependencies><dependency>
    <groupId>{group}</groupId><artifactId>{artifact}</artifactId><version>{version}</version>
    <exclusions>{exclusions}</exclusions>
  </dependency></dependencies>
</project>
"""

EXCLUSION = "<exclusion><groupId>{}</groupId><artifactId>{}</artifactId></exclusion>"

_failed: dict[Path, str] = {}


class Unavailable(Exception):
    """A program or package that this machine does not have; the message is the reason ("no gcc")."""


def java_jars(artifact: str, without: Sequence[str] = ()) -> Path:
    """Return a folder with the jars of an artifact `group:name:version` and its dependencies.

    Dependencies `group:name` in `without` are left out, with what only they depend on.
    """
    names = [artifact, *(f"without-{name}" for name in without)]
    return cached_folder(
        "-".join(names).replace(":", "-"), lambda folder: _fetch_jars(artifact, without, folder)
    )


def _fetch_jars(artifact: str, without: Sequence[str], folder: Path) -> None:
    group, name, version = artifact.split(":")
    pom = folder / "pom.xml"
    exclusions = "".join(EXCLUSION.format(*excluded.split(":")) for excluded in without)
    pom.write_text(POM.format(group=group, artifact=name, version=version, exclusions=exclusions))
    goal = ["dependency:copy-dependencies", f"-DoutputDirectory={folder}", "-DincludeScope=runtime"]
    run_tool([find_tool("mvn"), "-B", "-q", "-f", pom, *goal], f"Maven could not fetch {artifact}")


def maven_archive(artifact: str) -> Path:
    """Return the file of one artifact `group:name:version:packaging:classifier`."""
    folder = cached_folder(artifact.replace(":", "-"), lambda new: _fetch_archive(artifact, new))
    return next(folder.iterdir())


def _fetch_archive(artifact: str, folder: Path) -> None:
    goal = ["dependency:copy", f"-Dartifact={artifact}", f"-DoutputDirectory={folder}"]
    run_tool([find_tool("mvn"), "-B", "-q", *goal], f"Maven could not fetch {artifact}", folder)


def npm_package(package: str) -> Path:
    """Return the folder of an npm package `name@version` as published; none of its code is run."""
    name = f"npm-{package.replace('/', '-')}"
    return cached_folder(name, lambda new: _fetch_package(package, new)) / "package"


def _fetch_package(package: str, folder: Path) -> None:
    options: list[str | Path] = ["--ignore-scripts", "--pack-destination", folder]
    run_tool([find_tool("npm"), "pack", *options, package], f"npm could not fetch {package}", folder)
    archive = next(folder.glob("*.tgz"))
    with tarfile.open(archive) as packed:
        packed.extractall(folder, filter="data")
    archive.unlink()


def find_tool(name: str) -> str:
    """Return the path of a program; Unavailable if it is not on the PATH."""
    path = shutil.which(name)
    if path is None:
        raise Unavailable(f"no {name} on the PATH")
    return path


def cache_folder() -> Path:
    """Return the folder that downloads and compiled programs are cached in."""
    configured = os.environ.get("TIDINGS_BENCH_CACHE")
    caches = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return Path(configured) if configured else caches / "tidings-bench"


def cached_folder(name: str, fill: Callable[[Path], None]) -> Path:
    """Return the folder `name` in the cache, filled on first use.

    A temporary folder is filled and then renamed, so that an interrupted download leaves nothing behind.
    """
    folder = cache_folder() / name
    if folder in _failed:
        raise Unavailable(_failed[folder])
    if not folder.exists():
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent) as temporary:
            new = Path(temporary) / name
            new.mkdir()
            try:
                fill(new)
            except Unavailable as reason:
                _failed[folder] = str(reason)
                raise
            new.rename(folder)
    return folder


def run_tool(
    command: Sequence[str | Path],
    problem: str,
    folder: Path | None = None,
    environment: dict[str, str] | None = None,
) -> None:
    """Run a program; Unavailable with `problem` and its first error line if it fails."""
    try:
        done = subprocess.run(
            list(map(str, command)),
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            timeout=TIMEOUT_SECONDS,
        )
    except subprocess.TimeoutExpired as late:
        raise Unavailable(f"{problem} in {TIMEOUT_SECONDS:.0f} s") from late
    if done.returncode:
        raise Unavailable(f"{problem} ({_first_error(done.stdout + done.stderr)})")


def _first_error(output: str) -> str:
    """Return the most telling line, with addresses removed: a machine's package mirrors are private."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    line = next((line for line in lines if "error" in line.lower()), lines[-1] if lines else "no message")
    return " ".join("..." if "://" in word else word for word in line.split())[:200]
