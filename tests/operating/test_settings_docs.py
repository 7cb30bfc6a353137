"""Every setting has its row in the docs, with its variable, its default and the sentence of its declaration."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tidings.operating.loading import value_of
from tidings.operating.refusals import names
from tidings.operating.settings import NESTED, PREFIX, Settings

DOCS = Path(__file__).parents[2] / "docs" / "operating.md"


def row(name: str) -> str:
    model: Any = Settings
    *tables, last = name.split(".")
    for table in tables:
        model = model.model_fields[table].annotation
    variable = PREFIX + name.upper().replace(".", NESTED)
    default = value_of(Settings(), name)
    return f"| `{name}` | `{variable}` | {f'`{default}`' if default else ''} | {model.model_fields[last].description} |"


@pytest.mark.parametrize("name", names())
def test_every_setting_has_its_docs(name: str) -> None:
    assert row(name) in DOCS.read_text(), row(name)
