"""`schema show`, `schema check`, `schema extend`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.processes.command_line import EXAMPLES, Tidings

FURNITURE = str(EXAMPLES / "furniture.yaml")
SUMMARY = "2 event types, 5 attributes, 3 domains (furniture_category: 14 concepts)\n"


def test_extend_says_what_there_is_now(tidings: Tidings) -> None:
    assert tidings("schema", "extend", FURNITURE).stdout == SUMMARY
    assert tidings("schema", "extend", FURNITURE).stdout == f"nothing new: {SUMMARY}"


def test_check_reads_a_file_and_keeps_nothing(tidings: Tidings) -> None:
    done = tidings("schema", "check", FURNITURE)
    assert done.stdout == SUMMARY
    assert done.stderr == "checked as a schema of its own: none is in use\n"
    assert list(Path().iterdir()) == []


def test_check_is_extend_without_the_change(furniture: Tidings) -> None:
    """A file that leans on the schema in use is good, and what extend refuses is refused."""
    Path("more.yaml").write_text("event_types: {lots: {attributes: {price: mandatory}}}")
    done = furniture("schema", "check", "more.yaml")
    assert done.stdout.startswith("3 event types, 5 attributes")
    assert done.stderr == "checked as an extension of the schema in use\n"
    assert furniture("schema", "extend", FURNITURE).stdout == f"nothing new: {SUMMARY}"
    Path("other.yaml").write_text("attributes:\n  price: string\n")
    checked, extended = (furniture("schema", what, "other.yaml") for what in ("check", "extend"))
    assert checked.exit_code == extended.exit_code == 2
    assert checked.stderr == extended.stderr
    assert checked.stderr.startswith("error: other.yaml: ")


def test_check_names_subscriptions_that_would_be_orphaned(tidings: Tidings) -> None:
    tidings("subscribe", "--as", "ana", "colour = 'red'", "--id", "mine")
    done = tidings("schema", "check", FURNITURE)
    assert done.exit_code == 2
    assert "mine" in done.stderr


def test_what_show_prints_makes_the_same_schema(furniture: Tidings) -> None:
    Path("again.yaml").write_text(furniture("schema", "show").stdout)
    assert furniture("schema", "extend", "again.yaml").stdout == f"nothing new: {SUMMARY}"
    rows = [json.loads(row) for row in furniture("schema", "show", "--json").stdout.splitlines()]
    assert {"event_type", "attribute", "domain"} <= {row["section"] for row in rows}


def test_a_mistake_in_a_file_is_underlined(tidings: Tidings) -> None:
    Path("wrong.yaml").write_text("attributes:\n  price: numbers\n")
    done = tidings("schema", "check", "wrong.yaml")
    assert done.exit_code == 2
    assert "line 2" in done.stderr and "^" in done.stderr


def test_what_is_no_extension_is_refused(furniture: Tidings) -> None:
    Path("other.yaml").write_text("attributes:\n  price: string\n")
    done = furniture("schema", "extend", "other.yaml")
    assert done.exit_code == 2
    assert "price" in done.stderr


@pytest.mark.parametrize("command", ["check", "extend"])
def test_a_file_in_another_encoding_is_refused(tidings: Tidings, command: str) -> None:
    Path("latin.yaml").write_bytes("attributes:\n  größe: numeric\n".encode("latin-1"))
    done = tidings("schema", command, "latin.yaml")
    assert done.exit_code == 2
    assert done.stderr == "error: latin.yaml is not UTF-8 (byte 16); accepted: UTF-8\n"


def test_a_file_that_is_not_there(tidings: Tidings) -> None:
    done = tidings("schema", "extend", "nowhere.yaml")
    assert done.exit_code == 2
    assert done.stderr == "error: no file 'nowhere.yaml'; accepted: a schema as YAML\n"
