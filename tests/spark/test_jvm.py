"""Why a JVM does not start, in a sentence."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.ports import free_port
from tidings.errors import SetupError
from tidings.spark.jvm import find_cause
from tidings.spark.session import open_session

YARN = """WARNING: Using incubator modules: jdk.incubator.vector
Exception in thread "main" org.apache.spark.SparkException: When running with master 'yarn' either HADOOP_CONF_DIR
\tat org.apache.spark.deploy.SparkSubmitArguments.error(SparkSubmitArguments.scala:709)
"""
OPTION = """Unrecognized VM option 'UseNothing'
Error: Could not create the Java Virtual Machine.
Error: A fatal exception has occurred. Program will exit.
"""


@pytest.mark.parametrize(
    ("printed", "cause"),
    [
        (YARN, "When running with master 'yarn' either HADOOP_CONF_DIR"),
        (OPTION, "Unrecognized VM option 'UseNothing'"),
        ("it is late\ngood night\n", "good night"),
        ("", None),
    ],
    ids=["yarn", "option", "no problem named", "nothing"],
)
def test_find_cause_names_the_first_problem(printed: str, cause: str | None) -> None:
    assert find_cause(printed) == cause


def test_open_session_with_a_master_that_does_not_answer_says_so_at_once() -> None:
    with pytest.raises(SetupError, match="the Spark master does not answer") as refused:
        open_session(f"spark://127.0.0.1:{free_port()},127.0.0.1:{free_port()}")
    assert refused.value.received == "Connection refused"


def test_open_session_on_yarn_without_its_configuration_says_what_to_set(tmp_path: Path) -> None:
    """In a process of its own: this one has a session, whose JVM would be used."""
    program = (
        "from pathlib import Path\n"
        "from tidings.errors import SetupError\n"
        "from tidings.spark.session import open_session\n"
        "try:\n"
        f"    open_session('yarn', log=Path({str(tmp_path / 'spark.log')!r}))\n"
        "except SetupError as problem:\n"
        "    print(problem.where, problem.received, problem.hint, sep='\\n')\n"
    )
    environment = {name: value for name, value in os.environ.items() if "CONF_DIR" not in name}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True)
    where, received, hint = done.stdout.splitlines()
    assert (where, done.stderr) == ("yarn", "")
    assert "HADOOP_CONF_DIR" in received and "SparkException" not in received
    assert hint.startswith("set HADOOP_CONF_DIR")
    assert "SparkException" in (tmp_path / "spark.log").read_text()
