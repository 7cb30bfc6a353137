"""The example with two providers and two repositories runs, and its comparisons are equal."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.support.processes.command_line import EXAMPLES

# Six processes start in turn. The tests of replication and repositories show each of its steps.
pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def output() -> list[str]:
    process = subprocess.run(
        [sys.executable, str(EXAMPLES / "metadata/backbone.py")], capture_output=True, text=True, check=False
    )
    assert process.returncode == 0, process.stdout + process.stderr
    return process.stdout.splitlines()


def test_replication_example_ends_equal_to_full_recomputation(output: list[str]) -> None:
    lines = [line for line in output if not line.startswith(" ")]
    assert lines[-6:] == [
        "# At the end, each repository has what evaluating its rules from scratch gives:",
        "passau: 10 resources, equal",
        "large: 8 resources, equal",
        "providers: 6 documents each at position 12, equal",
        "",
        "Everything equals a full evaluation of the rules.",
    ]


def test_replication_example_prints_browse_page(output: list[str]) -> None:
    shown = [line.partition("/browse ")[2] for line in output if "/browse " in line]
    assert shown == ["shows the classes of second: CycleProvider 5, ServerInformation 5"]


def test_replication_example_disconnected_repository_answers_queries(output: list[str]) -> None:
    hosts = [f"host{number}.uni-passau.de" for number in range(1, 6)]
    assert " ".join(("query to 'passau', which is disconnected:", *hosts)) in output
    assert (
        "query to 'large', which is connected: host1.uni-passau.de host3.tum.de host4.uni-passau.de" in output
    )


def test_replication_example_repositories_catch_up_and_fail_over(output: list[str]) -> None:
    """The same provider sends the missed moves, another provider the whole state."""
    passau = [line for line in output if line.startswith("  passau | ")]
    assert sum("refreshed" in line for line in passau) == 1
    assert any("followed  6 moves  position 12  4 new, 2 changed, 4 gone" in line for line in passau)
    large = [line for line in output if line.startswith("  large | refreshed")]
    assert large[-1].endswith("because it is another provider than before")
