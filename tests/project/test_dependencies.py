"""Imports of the package are declared in pyproject.toml, and the pinned versions are within its bounds."""

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
"""Extras for users of Tidings; the others are for its developers."""
INTERNALS = ("numba", "llvmlite", "lark")
"""Libraries whose internals are used, so that a later version may break them silently."""


@cache
def project() -> dict[str, Any]:
    metadata: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return metadata


def declared() -> dict[str, Requirement]:
    """Return the requirements of users by name."""
    extras = project()["optional-dependencies"]
    lines = [*project()["dependencies"], *(line for name in FOR_USERS for line in extras[name])]
    return {canonicalize_name(each.name): each for each in map(Requirement, lines)}


def imported() -> set[str]:
    """Return the top-level packages that a module imports anywhere."""
    packages: set[str] = set()
    for path in (ROOT / "src").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                packages.update(each.name.partition(".")[0] for each in node.names)
            elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
                packages.add(node.module.partition(".")[0])
    return packages - sys.stdlib_module_names - {"tidings"}


def test_imports_of_package_are_declared() -> None:
    requirements, by_package = declared(), packages_distributions()
    missing = {
        name
        for name in imported()
        if not any(canonicalize_name(each) in requirements for each in by_package.get(name, ()))
    }
    assert missing == set()


@pytest.mark.parametrize("name", INTERNALS)
def test_libraries_with_used_internals_have_upper_bound(name: str) -> None:
    assert any(each.operator in ("<", "<=") for each in declared()[name].specifier)


def test_declared_dependencies_have_lower_bound() -> None:
    unbound = {
        name
        for name, each in declared().items()
        if not any(bound.operator == ">=" for bound in each.specifier)
    }
    assert unbound == set()


def test_pinned_versions_are_within_declared_bounds() -> None:
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
    """Return the lines of constraints.txt without comments."""
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    return [line for line in lines if not line.startswith("#")]
