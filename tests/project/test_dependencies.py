"""What the package imports is what pyproject.toml declares, and the pinned versions are within its bounds."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from functools import cache
from importlib.metadata import packages_distributions
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.support.paths import ROOT

FOR_USERS = ("postgresql", "kafka", "apprise", "traces")
"""Extras for people who run Tidings; the others are for those who work on it."""
INTERNALS = ("numba", "llvmlite", "lark")
"""Libraries of which more is used than their public interface: a later version may break it without a word."""


@cache
def project() -> dict[str, Any]:
    found: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return found


def declared() -> dict[str, Requirement]:
    """What users install, by name."""
    extras = project()["optional-dependencies"]
    lines = [*project()["dependencies"], *(line for name in FOR_USERS for line in extras[name])]
    return {canonicalize_name(each.name): each for each in map(Requirement, lines)}


def imported() -> set[str]:
    """The top-level packages that some module imports, anywhere in it."""
    found: set[str] = set()
    for path in (ROOT / "src").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                found.update(each.name.partition(".")[0] for each in node.names)
            elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
                found.add(node.module.partition(".")[0])
    return found - sys.stdlib_module_names - {"tidings"}


def test_imports_of_the_package_are_declared() -> None:
    known, by_package = declared(), packages_distributions()
    missing = {
        name
        for name in imported()
        if not any(canonicalize_name(each) in known for each in by_package.get(name, ()))
    }
    assert missing == set()


@pytest.mark.parametrize("name", INTERNALS)
def test_libraries_with_used_internals_have_an_upper_bound(name: str) -> None:
    assert any(each.operator in ("<", "<=") for each in declared()[name].specifier)


def test_declared_dependencies_have_a_lower_bound() -> None:
    unbound = {
        name
        for name, each in declared().items()
        if not any(bound.operator == ">=" for bound in each.specifier)
    }
    assert unbound == set()


def test_pinned_versions_are_within_the_declared_bounds() -> None:
    pinned = {
        canonicalize_name(name): version for name, _, version in (line.partition("==") for line in pins())
    }
    outside = {
        name: pinned.get(name) for name, each in declared().items() if pinned.get(name) not in each.specifier
    }
    assert outside == {}


def test_constraints_have_names_and_versions_only() -> None:
    odd = [line for line in pins() if not re.fullmatch(r"[A-Za-z0-9._-]+==[A-Za-z0-9.+!]+", line)]
    assert odd == []


def pins() -> list[str]:
    """The lines of constraints.txt that are no comments."""
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    return [line for line in lines if not line.startswith("#")]
