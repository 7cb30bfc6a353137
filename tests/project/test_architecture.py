"""The code walks of docs/architecture.md and the places of docs/glossary.md exist in the source."""

from __future__ import annotations

import ast
import re

import pytest

from tests.support.paths import ROOT

STEPS = re.findall(r"`([a-z0-9_/]+\.py):([\w.]+)`", (ROOT / "docs/architecture.md").read_text())
PLACES = re.findall(r"`([a-z0-9_/]+(?:\.py|/))`", (ROOT / "docs/glossary.md").read_text())


def test_architecture_page_has_walks() -> None:
    assert len(STEPS) > 30


@pytest.mark.parametrize(("file", "name"), STEPS)
def test_architecture_walk_step_exists(file: str, name: str) -> None:
    body = ast.parse((ROOT / "src/tidings" / file).read_text()).body
    for part in name.split("."):
        [definition] = [
            node
            for node in body
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and node.name == part
        ]
        body = definition.body


@pytest.mark.parametrize("place", PLACES)
def test_glossary_place_of_term_exists(place: str) -> None:
    assert (ROOT / "src/tidings" / place).exists()
