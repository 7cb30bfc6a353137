"""The checks of module names and commit messages report violations, and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from scripts.check_commit_message import message_problem
from scripts.check_names import main, name_problems


def test_module_names_of_package_follow_convention() -> None:
    assert main() == 0


@pytest.mark.parametrize(
    "name", ["store/reading.py", "store/rule_finding.py", "store/told.py", "api/found.py"]
)
def test_name_problems_finds_gerunds_and_participles(name: str) -> None:
    [problem] = name_problems([Path(name)])
    assert problem.startswith(name)


@pytest.mark.parametrize("name", ["matching/index/index.py", "store/encoding.py", "kernels/strings.py"])
def test_name_problems_accepts_nouns(name: str) -> None:
    assert list(name_problems([Path(name)])) == []


def test_name_problems_finds_basenames_used_twice_in_one_package() -> None:
    modules = [
        "feeds/inbound/schedule.py",
        "feeds/outbound/schedule.py",
        "delivery/schedule.py",
        "a/sql/tables.py",
    ]
    assert list(name_problems([*map(Path, modules), Path("a/b/tables.py")])) == [
        "feeds: 2 modules are named schedule: feeds/inbound/schedule.py, feeds/outbound/schedule.py"
    ]


@pytest.mark.parametrize(
    ("message", "part"),
    [
        ("store: batch concurrent appends into one commit", None),
        ("store: batch appends\n\nEach append was a commit.\n# a comment of git", None),
        ("Merge branch 'x'", None),
        ("Batch appends", "area: imperative summary"),
        ("store: batch appends.", "full stop"),
        ("store: " + "x" * 70, "77 characters"),
        ("store: batch appends\nbecause", "empty"),
        ("", "area: imperative summary"),
    ],
)
def test_message_problem_follows_convention(message: str, part: str | None) -> None:
    problem = message_problem(message)
    assert (problem is None) if part is None else (problem is not None and part in problem)
