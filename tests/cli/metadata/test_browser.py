"""Browsing metadata on the command line: `provider browse` and `provider pick`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.processes.command_line import Tidings
from tests.support.stores.browsable_metadata import DATA, DOC, DOCUMENTS, HOST, INFO, OTHER, PREFIXES, SCHEMA


@pytest.fixture
def provider(tidings: Tidings):
    Path("schema.ttl").write_text(SCHEMA)
    tidings("provider", "schema", "schema.ttl")
    for uri, text in DOCUMENTS.items():
        Path("doc.ttl").write_text(PREFIXES + text)
        assert tidings("provider", "register", uri, "doc.ttl").exit_code == 0
    return lambda *words: tidings("provider", *words)


def test_browse_without_argument_prints_class_tree(provider) -> None:
    assert provider("browse").stdout == (
        "Thing  3 resources, 0 its own\n"
        "  Provider  3 resources, 0 its own\n"
        "    CycleProvider  2 resources, 1 its own\n"
        "      Both  1 resource\n"
        "    DataProvider  2 resources, 1 its own\n"
        "      Both  1 resource\n"
        "Information  1 resource\n"
    )
    lines = [json.loads(line) for line in provider("browse", "--json").stdout.splitlines()]
    assert lines[4] == {
        "class": "Both",
        "parents": ["CycleProvider", "DataProvider"],
        "resources": 1,
        "own": 1,
    }


def test_browse_class_is_paginated(provider) -> None:
    result = provider("browse", "Provider", "--limit", "2")
    assert result.stdout == f"{HOST}  CycleProvider\n{OTHER}#both  Both\n"
    assert result.stderr == f"more: tidings provider browse 'Provider' --after '{OTHER}#both'\n"
    rest = provider("browse", "Provider", "--after", f"{OTHER}#both", "--json")
    assert (json.loads(rest.stdout), rest.stderr) == ({"uri": DATA, "class": "DataProvider"}, "")
    provider("remove", DOC)
    assert provider("browse", "Information").stderr == "no resources\n"


def test_browse_resource_shows_references_and_referrers(provider) -> None:
    assert provider("browse", HOST).stdout == (
        f"{HOST}  CycleProvider\n"
        "  name  <b>pirates</b> & co\n"
        "  open  true\n"
        f"  information  strong  ->  {INFO}  Information\n"
        f"  partners  weak  ->  {DOC}#none  not there\n"
        f"  partners  weak  ->  {DATA}  DataProvider\n"
        f"  partners  weak  <-  {OTHER}#both  Both\n"
        f"  partners  weak  <-  {DATA}  DataProvider\n"
    )
    assert f"{INFO}  Information  invalid target: another class" in provider("browse", DATA).stdout
    more = provider("browse", INFO, "--limit", "1").stderr
    assert more == f"more: tidings provider browse '{INFO}' --after 'information {HOST}'\n"
    resource = json.loads(provider("browse", INFO, "--json").stdout)
    assert (resource["values"], resource["document"], resource["next"]) == ({"memory": [92]}, DOC, None)
    first = {"property": "information", "uri": HOST, "class": "CycleProvider"}
    assert resource["referrers"][0] == first | {"reference": "strong", "leads": True}


def test_pick_prints_or_adds_rule(provider) -> None:
    text = f"search CycleProvider c register c where c = <{HOST}>"
    assert provider("pick", HOST).stdout == f"{text}\n"
    assert json.loads(provider("pick", HOST, "--json").stdout) == {"name": "doc.ttl-host", "text": text}
    assert provider("rules").stdout == ""
    added = provider("pick", HOST, "--as", "ana")
    assert added.stdout == f"doc.ttl-host  entered  {HOST}\ndoc.ttl-host  1 resource\n"
    with_name = provider("pick", "DataProvider", "--as", "ana", "--name", "data")
    assert with_name.stdout.endswith("data  2 resources\n")
    assert provider("rules").stdout == (
        f"data  ana  search DataProvider d register d\ndoc.ttl-host  ana  {text}\n"
    )
    assert "of this name already" in provider("pick", HOST, "--as", "ana").stderr
    assert "the id 'doc.ttl-host' is taken" in provider("pick", HOST, "--as", "bob").stderr


@pytest.mark.parametrize("command", ["browse", "pick"])
@pytest.mark.parametrize(
    ("what", "message"),
    [
        ("Provder", "there is no class 'Provder'"),
        (f"{DOC}#hots", f"did you mean '{HOST}'?"),
        ("urn:nobody", "there is no such resource"),
    ],
)
def test_browse_and_pick_unknown_name_is_rejected(provider, command: str, what: str, message: str) -> None:
    result = provider(command, what)
    assert (result.exit_code, result.stdout) == (2, "") and message in result.stderr


def test_browse_and_pick_invalid_options_are_rejected(provider) -> None:
    assert "--as NAME" in provider("pick", HOST, "--name", "x").stderr
    assert provider("browse", "Provider", "--limit", "0").exit_code == 2
    assert "not a cursor of a page" in provider("browse", HOST, "--after", "x").stderr


def test_browse_without_schema_is_setup_error(tidings: Tidings) -> None:
    result = tidings("provider", "browse")
    assert result.exit_code == 4 and "no schema" in result.stderr
