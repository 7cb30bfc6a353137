"""Every setting has a row in the docs, with its variable, default and description."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.paths import ROOT
from tidings.operations.settings import NESTING_DELIMITER, VARIABLE_PREFIX, Settings
from tidings.operations.settings_sources import format_setting, list_setting_names

DOCS = ROOT / "docs" / "operating.md"


def row(name: str) -> str:
    model: Any = Settings
    *tables, last = name.split(".")
    for table in tables:
        model = model.model_fields[table].annotation
    variable = VARIABLE_PREFIX + name.upper().replace(".", NESTING_DELIMITER)
    default = format_setting(Settings(), name)
    return f"| `{name}` | `{variable}` | {f'`{default}`' if default else ''} | {model.model_fields[last].description} |"


@pytest.mark.parametrize("name", list_setting_names())
def test_docs_describe_every_setting(name: str) -> None:
    assert row(name) in DOCS.read_text(), row(name)
