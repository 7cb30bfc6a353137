"""`schema show`, `schema check` and `schema extend`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.processes.command_line import EXAMPLES, Tidings

FURNITURE = str(EXAMPLES / "furniture.yaml")
SUMMARY = "2 event types, 5 attributes, 3 domains (furniture_category: 14 concepts)\n"


def test_schema_extend_prints_summary(tidings: Tidings) -> None:
    assert tidings("schema", "extend", FURNITURE).stdout == SUMMARY
    assert tidings("schema", "extend", FURNITURE).stdout == f"nothing new: {SUMMARY}"


def test_schema_check_stores_nothing(tidings: Tidings) -> None:
    result = tidings("schema", "check", FURNITURE)
    assert result.stdout == SUMMARY
    assert result.stderr == "checked as a schema of its own: none is in use\n"
    assert list(Path().iterdir()) == []


def test_schema_check_agrees_with_extend(furniture: Tidings) -> None:
    """A file that refers to the schema in use is valid, and both commands report the same errors."""
    Path("more.yaml").write_text("event_types: {lots: {attributes: {price: mandatory}}}")
    result = furniture("schema", "check", "more.yaml")
    assert result.stdout.startswith("3 event types, 5 attributes")
    assert result.stderr == "checked as an extension of the schema in use\n"
    assert furniture("schema", "extend", FURNITURE).stdout == f"nothing new: {SUMMARY}"
    Path("other.yaml").write_text("attributes:\n  price: string\n")
    checked, extended = (furniture("schema", action, "other.yaml") for action in ("check", "extend"))
    assert checked.exit_code == extended.exit_code == 2
    assert checked.stderr == extended.stderr
    assert checked.stderr.startswith("error: other.yaml: ")


def test_schema_check_names_orphaned_subscriptions(tidings: Tidings) -> None:
    tidings("subscribe", "--as", "ana", "colour = 'red'", "--id", "mine")
    result = tidings("schema", "check", FURNITURE)
    assert result.exit_code == 2
    assert "mine" in result.stderr


def test_schema_show_output_recreates_schema(furniture: Tidings) -> None:
    Path("again.yaml").write_text(furniture("schema", "show").stdout)
    assert furniture("schema", "extend", "again.yaml").stdout == f"nothing new: {SUMMARY}"
    rows = [json.loads(row) for row in furniture("schema", "show", "--json").stdout.splitlines()]
    assert {"event_type", "attribute", "domain"} <= {row["section"] for row in rows}


def test_schema_check_error_is_underlined(tidings: Tidings) -> None:
    Path("wrong.yaml").write_text("attributes:\n  price: numbers\n")
    result = tidings("schema", "check", "wrong.yaml")
    assert result.exit_code == 2
    assert "line 2" in result.stderr and "^" in result.stderr


def test_schema_extend_contradiction_is_rejected(furniture: Tidings) -> None:
    Path("other.yaml").write_text("attributes:\n  price: string\n")
    result = furniture("schema", "extend", "other.yaml")
    assert result.exit_code == 2
    assert "price" in result.stderr


@pytest.mark.parametrize("command", ["check", "extend"])
def test_schema_file_in_other_encoding_is_rejected(tidings: Tidings, command: str) -> None:
    Path("latin.yaml").write_bytes("attributes:\n  größe: numeric\n".encode("latin-1"))
    result = tidings("schema", command, "latin.yaml")
    assert result.exit_code == 2
    assert result.stderr == "error: latin.yaml is not UTF-8 (byte 16); accepted: UTF-8\n"


def test_schema_missing_file_is_rejected(tidings: Tidings) -> None:
    result = tidings("schema", "extend", "nowhere.yaml")
    assert result.exit_code == 2
    assert result.stderr == "error: no file 'nowhere.yaml'; accepted: a schema as YAML\n"
