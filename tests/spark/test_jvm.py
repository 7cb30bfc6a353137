"""Error messages for a JVM that does not start."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from time import sleep

import pytest

from tests.support.servers.ports import free_port
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
def test_find_cause_names_first_problem(printed: str, cause: str | None) -> None:
    assert find_cause(printed) == cause


def test_open_session_unreachable_master_is_rejected_early() -> None:
    with pytest.raises(SetupError, match="the Spark master does not answer") as problem:
        open_session(f"spark://127.0.0.1:{free_port()},127.0.0.1:{free_port()}")
    assert problem.value.received == "Connection refused"


def test_open_session_yarn_without_configuration_hint_names_variable(tmp_path: Path) -> None:
    """The test uses a new process, because this one has a session whose JVM would be used."""
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
    result = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True)
    where, received, hint = result.stdout.splitlines()
    assert (where, result.stderr) == ("yarn", "")
    assert "HADOOP_CONF_DIR" in received and "SparkException" not in received
    assert hint.startswith("set HADOOP_CONF_DIR")
    assert "SparkException" in (tmp_path / "spark.log").read_text()


def test_open_session_with_packages_that_cannot_be_fetched_says_what_to_check(tmp_path: Path) -> None:
    """Ivy looks in an empty folder only: nothing is fetched from anywhere."""
    settings = tmp_path / "ivy.xml"
    settings.write_text(
        "<ivysettings><settings defaultResolver='none'/>"
        f"<resolvers><filesystem name='none'><artifact pattern='{tmp_path}/[artifact]-[revision].jar'/></filesystem>"
        "</resolvers></ivysettings>"
    )
    program = (
        "import sys\n"
        "from tidings.errors import SetupError\n"
        "from tidings.spark.session import open_session\n"
        "names = 'packages', 'ivySettings', 'ivy'\n"
        "try:\n"
        "    open_session('local[1]', **{f'spark.jars.{n}': v for n, v in zip(names, sys.argv[1:])})\n"
        "except SetupError as problem:\n"
        "    print(problem.received, problem.hint, sep='\\n')\n"
    )
    given = ["com.example:nothing:1.0", str(settings), str(tmp_path / "ivy")]
    done = subprocess.run([sys.executable, "-c", program, *given], capture_output=True, text=True)
    received, hint = done.stdout.splitlines()[-2:]  # Ivy names its settings first
    assert "unresolved dependency: com.example#nothing;1.0: not found" in received
    assert "--packages" in hint and "--jars" in hint


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="finds the JVM in /proc")
def test_start_jvm_interrupted_by_signal_leaves_no_jvm(tmp_path: Path) -> None:
    program = (
        "import signal, sys\n"
        "signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))\n"
        "from tidings.spark.jvm import start_jvm\n"
        "print('ready', flush=True)\n"
        "start_jvm({}, None)\n"
        "sys.stdin.read()\n"
    )
    environment = os.environ | {"JVM_OF": str(tmp_path)}
    with subprocess.Popen(
        [sys.executable, "-c", program],
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as driver:
        wait_until(lambda: find_processes(b"_PYSPARK_DRIVER_CONN_INFO_PATH=", str(tmp_path)))
        driver.terminate()
        assert driver.wait() == 143
    wait_until(lambda: not find_processes(b"JVM_OF=", str(tmp_path)))


@pytest.mark.faults
@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="finds the JVM in /proc")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
@pytest.mark.parametrize("command", ["serve", "match"])
def test_command_killed_during_start_of_spark_leaves_no_jvm(
    tmp_path: Path, command: str, number: signal.Signals
) -> None:
    (tmp_path / "subscriptions").write_text(
        '{"id": "s", "subscriber": "ana", "language": "xpath", "text": "/a"}\n'
    )
    (tmp_path / "publications").write_text('{"id": "p"}\n')
    words = {
        "serve": ["--port", "0", "--home", "home"],
        "match": ["--subscriptions", "subscriptions", "--publications", "publications", "--out", "out"],
    }
    with subprocess.Popen(
        [sys.executable, "-m", "tidings", command, *words[command]],
        cwd=tmp_path,
        env=os.environ | {"JVM_OF": str(tmp_path)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # ignored in jobs of a shell
    ) as process:
        wait_until(lambda: find_processes(b"_PYSPARK_DRIVER_CONN_INFO_PATH=", str(tmp_path)))
        process.send_signal(number)
        assert process.wait() in (-number, 128 + number)
    wait_until(lambda: not find_processes(b"JVM_OF=", str(tmp_path)))


def wait_until(holds: Callable[[], object]) -> None:
    """Wait for a condition; the time limit of the test ends the wait."""
    while not holds():
        sleep(0.05)


def find_processes(variable: bytes, folder: str) -> list[str]:
    """Find processes that have a variable and belong to the test with this folder."""
    ids = []
    for path in Path("/proc").glob("[0-9]*/environ"):
        with contextlib.suppress(OSError):  # the process has ended or belongs to another user
            variables = path.read_bytes()
            if variable in variables and f"JVM_OF={folder}".encode() in variables:
                ids.append(path.parent.name)
    return ids
