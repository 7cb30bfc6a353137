"""Versions of Spark that Tidings supports, each with the connectors that fit it, and environments to run them in.

The version that is installed runs in this environment. Each other one has a virtual environment in the cache folder
(`packages`), with the pinned versions of everything else. It is created once, and again when the pins change.
"""

from __future__ import annotations

import hashlib
import sys
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pyspark

from tests.support.packages import cached_folder, java_jars, run_tool
from tests.support.paths import ROOT

EXTRAS = ("postgresql", "kafka")
TEST_TOOLS = ("pytest", "pytest-timeout", "pytest-xdist", "hypothesis")
CONNECTOR_JARS = (
    "spark-sql-kafka",
    "spark-token-provider-kafka",
    "kafka-clients",
    "commons-pool2",
    "delta-",
    "unitycatalog-",
    "iceberg-",
)
TOKEN_PROVIDER = "org.apache.spark:spark-token-provider-kafka-0-10_2.13"


def series_of(version: str) -> str:
    """Return the major and minor version: `4.2` for 4.2.1."""
    return ".".join(version.split(".")[:2])


@dataclass(frozen=True)
class SparkVersion:
    """A version of pyspark, and the Maven coordinates of connectors; None where no release fits."""

    pyspark: str
    kafka: str
    delta: str | None = None
    iceberg: str | None = None

    @property
    def series(self) -> str:
        return series_of(self.pyspark)


VERSIONS = {
    version.series: version
    for version in (
        SparkVersion(
            "4.1.4",
            kafka="org.apache.spark:spark-sql-kafka-0-10_2.13:4.1.3",
            delta="io.delta:delta-spark_4.1_2.13:4.4.0",
            iceberg="org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0",
        ),
        SparkVersion(
            "4.2.1",
            kafka="org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0",
            delta="io.delta:delta-spark_4.2_2.13:4.4.0",
        ),
        SparkVersion("4.3.0", kafka="org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0"),
    )
}


def installed() -> SparkVersion:
    """Return the version that runs here."""
    return VERSIONS[series_of(pyspark.__version__)]


def find_python(series: str) -> Path:
    """Return an interpreter with a version of Spark; `Unavailable` if it cannot be installed."""
    if series == series_of(pyspark.__version__):
        return Path(sys.executable)
    requirements, constraints = _requirements(VERSIONS[series].pyspark), _constraints()
    digest = hashlib.blake2b("\n".join(requirements + constraints).encode(), digest_size=4).hexdigest()
    name = f"pyspark-{series}-python-{sys.version_info.major}.{sys.version_info.minor}-{digest}"
    return cached_folder(name, lambda folder: _install(folder, requirements, constraints)) / "bin/python"


def _requirements(version: str) -> list[str]:
    """Return what Tidings and these tests need, with a version of pyspark."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = [line for extra in EXTRAS for line in project["optional-dependencies"][extra]]
    others = [line for line in project["dependencies"] if not line.startswith("pyspark")]
    return [f"pyspark[connect]=={version}", *others, *extras, *TEST_TOOLS]


def _constraints() -> list[str]:
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    return [line for line in lines if not line.startswith(("#", "pyspark=", "py4j="))]


def _install(folder: Path, requirements: Sequence[str], constraints: Sequence[str]) -> None:
    """Create a virtual environment. Only `python -m` works in it once the folder has its final name."""
    (folder / "requirements.txt").write_text("\n".join(requirements))
    (folder / "constraints.txt").write_text("\n".join(constraints))
    run_tool([sys.executable, "-m", "venv", folder], "no virtual environment")
    pip = [folder / "bin/python", "-m", "pip", "install", "-q", "--disable-pip-version-check"]
    files = ["-r", folder / "requirements.txt", "-c", folder / "constraints.txt"]
    run_tool([*pip, *files], f"pip could not install {requirements[0]}")


def find_jars(version: SparkVersion) -> list[Path]:
    """Return the jars of all connectors of a version; `Unavailable` if Maven cannot fetch them.

    What connectors depend on is Spark's own, but for a few jars: others could only hide a conflict that users have.
    """
    folders = [java_jars(version.kafka, without=[TOKEN_PROVIDER]), java_jars(f"{TOKEN_PROVIDER}:4.0.0")]
    folders += [java_jars(artifact) for artifact in (version.delta, version.iceberg) if artifact]
    jars = (jar for folder in folders for jar in sorted(folder.glob("*.jar")))
    return list({jar.name: jar for jar in jars if jar.name.startswith(CONNECTOR_JARS)}.values())


def connector_settings(version: SparkVersion, lake: Path) -> dict[str, str]:
    """Return Spark's settings for the connectors of a version, with an Iceberg catalog `lake` in a folder."""
    settings = {"spark.jars": ",".join(map(str, find_jars(version)))}
    extensions = []
    if version.delta:
        extensions.append("io.delta.sql.DeltaSparkSessionExtension")
        settings["spark.sql.catalog.spark_catalog"] = "org.apache.spark.sql.delta.catalog.DeltaCatalog"
    if version.iceberg:
        extensions.append("org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions")
        settings["spark.sql.catalog.lake"] = "org.apache.iceberg.spark.SparkCatalog"
        settings["spark.sql.catalog.lake.type"] = "hadoop"
        settings["spark.sql.catalog.lake.warehouse"] = str(lake)
    return settings | ({"spark.sql.extensions": ",".join(extensions)} if extensions else {})
