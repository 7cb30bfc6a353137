"""The example with two providers and two repositories: it runs, and what it compares is equal."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.support.processes.command_line import EXAMPLES

# Six processes start one after the other. The tests of followers and repositories show each of its steps.
pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def printed() -> list[str]:
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / "metadata/backbone.py")], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.splitlines()


def test_in_the_end_all_is_as_a_full_recomputation_says(printed: list[str]) -> None:
    told = [line for line in printed if not line.startswith(" ")]
    assert told[-6:] == [
        "# In the end, repositories hold what evaluating their rules from scratch gives:",
        "passau: 10 resources, equal",
        "large: 8 resources, equal",
        "providers: 6 documents each at position 12, equal",
        "",
        "All is as evaluating every rule from scratch says.",
    ]


def test_people_look_around(printed: list[str]) -> None:
    shown = [line.partition("/browse ")[2] for line in printed if "/browse " in line]
    assert shown == ["shows the classes of second: CycleProvider 5, ServerInformation 5"]


def test_a_repository_that_is_cut_off_answers_all_the_same(printed: list[str]) -> None:
    hosts = [f"host{number}.uni-passau.de" for number in range(1, 6)]
    assert " ".join(("asked 'passau', which is cut off:", *hosts)) in printed
    assert "asked 'large', which is not:      host1.uni-passau.de host3.tum.de host4.uni-passau.de" in printed


def test_repositories_catch_up_and_move(printed: list[str]) -> None:
    """What was missed comes as moves, not as everything once more; another provider tells everything."""
    passau = [line for line in printed if line.startswith("  passau | ")]
    assert sum("refreshed" in line for line in passau) == 1
    assert any("followed  6 moves  position 12  4 new, 2 changed, 4 gone" in line for line in passau)
    large = [line for line in printed if line.startswith("  large | refreshed")]
    assert large[-1].endswith("because it is another provider than before")
