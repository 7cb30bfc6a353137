"""Files of rules, and errors in them with line and column of the file."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.stores.server_documents import ALL, LARGE, SCHEMA
from tidings.errors import InputError, SubscriptionError, SyntaxProblem
from tidings.graphs.rdf import rdf_decoder
from tidings.metadata.rules.rule_files import RuleFile, parse_rule_file
from tidings.metadata.schema.schema_parser import parse_schema

SERVERS = parse_schema(rdf_decoder.decode(SCHEMA.body, SCHEMA.media_type))


def test_rule_file_has_names_comments_and_continued_lines():
    text = f"""# all of them
all: {ALL}

large: search CycleProvider c register c
    # more than the computers of those days had

    where c.serverInformation.memory > 64
\tand c.serverPort = 5874
"""
    assert RuleFile(text).texts == {"all": ALL, "large": f"{LARGE} and c.serverPort = 5874"}
    assert RuleFile("").texts == {} and RuleFile("# nothing\n").texts == {}
    assert RuleFile(f"later:\n  {ALL}").texts == {"later": ALL}


INVALID = {
    "  where c.serverPort = 80": ("an indented line without a rule before it", 1, 3, 23),
    f"{ALL}\n": ("a rule starts with its name and a colon", 1, 1, len(ALL)),
    f"all: {ALL}\n7up: {ALL}": ("not a valid rule name", 2, 1, 3),
    f"all: {ALL}\n\nall: {ALL}": ("duplicate rule 'all'", 3, 1, 3),
    f"all: {ALL}\nnone:\n": ("the rule 'none' has no text", 2, 1, 4),
    f"all: {ALL}\nhalf:  search CycleProvider c\n": ("expected", 2, 30, 1),
    "a: search CycleProvider c register c\n   where c.serverPort == 80": (
        "write '=' instead of '=='",
        2,
        23,
        2,
    ),
    "a: search CycleProvider c register d": ("'d' is registered, but not searched", 1, 36, 1),
}


@pytest.mark.parametrize("text", INVALID)
def test_rule_file_syntax_error_has_position(text):
    what, *place = INVALID[text]
    with pytest.raises(SyntaxProblem if "registered" not in what else SubscriptionError) as error:
        RuleFile(text, "rules.txt")
    position = error.value.place
    assert what in error.value.what and error.value.what.startswith("rules.txt")
    assert position is not None and [position.line, position.column, position.length] == place


def test_rule_file_schema_error_has_position():
    text = f"all: {ALL}\nours: search all c register c\n  where c.serverPort = 1 and\n    c.serverHots = 'x'"
    with pytest.raises(SubscriptionError, match="serverHots") as error:
        RuleFile(text).check(SERVERS)
    place = error.value.place
    assert place is not None and (place.line, place.column, place.length) == (4, 7, len("serverHots"))
    assert "did you mean 'serverHost'" in str(error.value) and "rule 'ours'" in str(error.value)


def test_rule_file_check_accepts_rules_of_provider_and_rejects_cycles():
    RuleFile("ours: search theirs c register c\nmore: search ours c register c").check(SERVERS)
    with pytest.raises(SubscriptionError, match="cycle"):
        RuleFile("a: search b c register c\nb: search a c register c").check(SERVERS)
    with pytest.raises(InputError, match="CycleProvider"):
        RuleFile(f"CycleProvider: {ALL}").check(SERVERS)


def test_parse_rule_file_accepts_bom_and_rejects_invalid_encoding(tmp_path: Path):
    (tmp_path / "rules.txt").write_bytes(b"\xef\xbb\xbfall: " + ALL.encode() + b"\r\n")
    assert parse_rule_file(tmp_path / "rules.txt").texts == {"all": ALL}
    (tmp_path / "rules.txt").write_bytes(b"all: x\n\xff")
    with pytest.raises(InputError, match=r"not UTF-8 \(line 2\)"):
        parse_rule_file(tmp_path / "rules.txt")
    with pytest.raises(InputError, match="cannot read"):
        parse_rule_file(tmp_path / "missing.txt")
