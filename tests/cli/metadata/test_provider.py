"""Metadata on the command line: `provider`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.paths import ROOT
from tests.support.processes.command_line import Tidings

EXAMPLES = ROOT / "examples" / "metadata"
DOC = "http://example.org/doc.rdf"
RULE = "search ServerInformation s register s where s.memory > 64"


@pytest.fixture
def provider(tidings: Tidings):
    tidings("provider", "schema", str(EXAMPLES / "schema.ttl"))
    return lambda *words: tidings("provider", *words)


def lines(text: str) -> list[dict[str, object]]:
    return [json.loads(line) for line in text.splitlines()]


def test_provider_json_output_has_same_facts(provider) -> None:
    assert lines(provider("rule", "large", RULE, "--as", "ana", "--json").stdout) == []
    result = provider("register", DOC, str(EXAMPLES / "host.rdf"), "--json")
    assert lines(result.stdout) == [
        {"uri": DOC, "new": 2, "changed": 0, "deleted": 0, "unchanged": 0},
        {"rule": "large", "kind": "entered", "uri": f"{DOC}#info"},
    ]
    assert lines(provider("results", "large", "--json").stdout) == [
        {"uri": f"{DOC}#info", "class": "ServerInformation", "values": {"cpu": [600], "memory": [92]}}
    ]
    assert lines(provider("documents", "--json").stdout) == [{"uri": DOC, "resources": 2}]
    assert lines(provider("rules", "--json").stdout) == [{"name": "large", "owner": "ana", "text": RULE}]


def test_remove_rule_removes_rule(provider) -> None:
    provider("rule", "large", RULE, "--as", "ana")
    assert provider("remove-rule", "large").stdout == "large  removed\n"
    assert provider("remove-rule", "large").exit_code == 3
    assert "no rules" in provider("rules").stderr


def test_rule_names_taken_and_unknown_are_rejected(provider, tmp_path: Path) -> None:
    """A taken name, a misspelled one, and the name of an invalid rule in a file."""
    provider("rule", "large", RULE, "--as", "ana")
    assert "tidings provider remove-rule" in provider("rule", "large", RULE, "--as", "ana").stderr
    assert "did you mean 'large'?" in provider("results", "larg").stderr
    (tmp_path / "rules.txt").write_text(f"good: {RULE}\nbad: search Servers s register s\n")
    result = provider("rules", str(tmp_path / "rules.txt"), "--as", "ana")
    assert result.exit_code == 2 and "error: rule 'bad': there is no class or rule 'Servers'" in result.stderr


def test_results_print_booleans_as_in_rules(tidings: Tidings, tmp_path: Path) -> None:
    (tmp_path / "s.ttl").write_text(
        "@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> ."
        "<http://example.org/s#Book> a rdfs:Class ."
        "<http://example.org/s#lent> a <http://www.w3.org/1999/02/22-rdf-syntax-ns#Property> ;"
        " rdfs:domain <http://example.org/s#Book> ; rdfs:range <http://www.w3.org/2001/XMLSchema#boolean> ."
    )
    (tmp_path / "b.ttl").write_text(
        "<#b> a <http://example.org/s#Book> ; <http://example.org/s#lent> false ."
    )
    tidings("provider", "schema", str(tmp_path / "s.ttl"))
    tidings("provider", "register", "http://example.org/b.ttl", str(tmp_path / "b.ttl"))
    tidings("provider", "rule", "in", "search Book b register b where b.lent = false", "--as", "ana")
    assert tidings("provider", "results", "in").stdout == "http://example.org/b.ttl#b  Book  lent false\n"


def test_provider_prints_dates_with_precision_of_schema(tidings: Tidings, tmp_path: Path) -> None:
    (tmp_path / "s.ttl").write_text(
        "@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> ."
        "@prefix xsd: <http://www.w3.org/2001/XMLSchema#> ."
        "@prefix rdf: <http://www.w3.org/1999/02/22-rdf-syntax-ns#> ."
        "@prefix : <http://example.org/s#> . @prefix md: <https://tidings.dev/metadata#> ."
        ":Book a rdfs:Class . :Shelf a rdfs:Class ."
        ":due a rdf:Property ; rdfs:domain :Book ; rdfs:range xsd:date ."
        ":read a rdf:Property ; rdfs:domain :Book ; rdfs:range xsd:date ; md:several true ."
        ":lent a rdf:Property ; rdfs:domain :Book ; rdfs:range xsd:dateTime ."
        ":has a rdf:Property ; rdfs:domain :Shelf ; rdfs:range :Book ; md:reference md:strong ."
    )
    (tmp_path / "b.ttl").write_text(
        "@prefix : <http://example.org/s#> . @prefix xsd: <http://www.w3.org/2001/XMLSchema#> ."
        '<#b> a :Book ; :due "2026-11-15"^^xsd:date ; :read "2026-01-02", "2026-01-03T04:05:06Z" ;'
        ' :lent "2026-10-15" . <#s> a :Shelf ; :has <#b> .'
    )
    tidings("provider", "schema", str(tmp_path / "s.ttl"))
    tidings("provider", "register", "http://example.org/b.ttl", str(tmp_path / "b.ttl"))
    tidings("provider", "rule", "due", "search Book b register b where b.due > '2026-11-14'", "--as", "ana")
    read, lent = ["2026-01-02", "2026-01-03T04:05:06.000000Z"], ["2026-10-15T00:00:00.000000Z"]
    values = {"due": ["2026-11-15"], "read": read, "lent": lent}
    assert lines(tidings("provider", "results", "due", "--json").stdout)[0]["values"] == values
    queried = tidings("query", "--at-provider", "--json", "search Book b where b.due = '2026-11-15'")
    assert lines(queried.stdout)[0]["values"] == values
    select = "search Shelf s select s.has.due, s.has.read?, s.has.lent"
    [row] = lines(tidings("query", "--at-provider", "--json", select).stdout)
    assert list(row.values()) == ["2026-11-15", read, lent[0]]
    assert "due  2026-11-15\n" in tidings("provider", "browse", "http://example.org/b.ttl#b").stdout


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("register", DOC, "nowhere.rdf"), "no file"),
        (("register", DOC, "host.csv"), "the media type of"),
        (("register", "doc.rdf", str(EXAMPLES / "host.rdf")), "absolute"),
        (("register", f"{DOC}#host", str(EXAMPLES / "host.rdf")), "fragment"),
        (("remove", "doc.rdf"), "absolute"),
        (("results", "nobody"), "no such rule"),
        (("restore", str(EXAMPLES / "schema.ttl")), "accepted: the output of tidings provider snapshot"),
        (("rule", "CycleProvider", RULE, "--as", "ana"), "class"),
        (("rule", "wrong", "search Nothing n register n", "--as", "ana"), "Nothing"),
        (("schema", str(EXAMPLES / "host.rdf")), "relative"),
        (("schema", str(EXAMPLES.parent / "page.ttl")), "declares no class"),
        (("schema", "--base", DOC, str(EXAMPLES / "host.rdf")), "tidings provider register URI FILE"),
    ],
)
def test_provider_invalid_input_is_rejected_and_not_stored(
    provider, words: tuple[str, ...], message: str
) -> None:
    result = provider(*words)
    assert result.exit_code == 2 and message in result.output
    assert (provider("documents").stdout, provider("rules").stdout) == ("", "")


def test_schema_base_resolves_relative_iris(tidings: Tidings) -> None:
    Path("s.ttl").write_text("<#Disk> a <http://www.w3.org/2000/01/rdf-schema#Class> .")
    assert tidings("provider", "schema", "s.ttl", "--base", DOC).stdout == "1 class, 0 properties\n"
    Path("d.ttl").write_text("<#d> a <#Disk> .")
    assert "1 new" in tidings("provider", "register", DOC, "d.ttl").stdout


def test_remove_unknown_document_is_rejected(provider) -> None:
    provider("register", DOC, str(EXAMPLES / "host.rdf"))
    before = provider("log").stdout
    for more in ((), ("--later",)):
        result = provider("remove", "http://example.org/dok.rdf", *more)
        assert result.exit_code == 2 and f"did you mean '{DOC}'?" in result.stderr
        assert "tidings provider documents" in provider("remove", "urn:x:1", *more).stderr
    assert provider("log").stdout == before


def test_remove_later_document_of_log_only(provider) -> None:
    provider("register", DOC, str(EXAMPLES / "host.rdf"), "--later")
    assert provider("remove", DOC, "--later").exit_code == 0
    assert provider("remove", DOC, "--later").exit_code == provider("remove", DOC).exit_code == 2


def test_register_without_schema_is_setup_error(tidings: Tidings) -> None:
    result = tidings("provider", "register", DOC, str(EXAMPLES / "host.rdf"))
    assert result.exit_code == 4 and "tidings provider schema FILE" in result.output


def test_register_from_folder_registers_valid_documents(provider, tmp_path: Path) -> None:
    provider("rule", "large", RULE, "--as", "ana")
    folder = tmp_path / "docs"
    (folder / "in it").mkdir(parents=True)
    (folder / "a.rdf").write_bytes((EXAMPLES / "host.rdf").read_bytes())
    (folder / "in it" / "b.rdf").write_bytes((EXAMPLES / "host-with-32MB.rdf").read_bytes())
    (folder / "bad.ttl").write_text(
        "<#a> a <http://example.org/servers#Nothing>, <http://example.org/servers#No> ."
    )
    (folder / "notes.txt").write_text("no document")
    result = provider("register", "--from", str(folder), "--base", "http://example.org/")
    assert (result.exit_code, result.stdout) == (3, "2 documents registered, 1 refused, 1 entered\n")
    assert result.stderr.count("bad.ttl: not a class of the schema") == 2
    documents = lines(provider("documents", "--json").stdout)
    assert [each["uri"] for each in documents] == [
        "http://example.org/a.rdf",
        "http://example.org/in%20it/b.rdf",
    ]


def test_register_later_appends_to_log_without_applying(provider, tmp_path: Path) -> None:
    document = {
        "uri": "http://example.org/l.ttl",
        "body": "<#i> a <http://example.org/servers#ServerInformation> .",
    }
    entries = [
        json.dumps(document),
        '{"uri": 3}',
        "nonsense",
        json.dumps({**document, "uri": "http://example.org/l"}),
    ]
    (tmp_path / "l.jsonl").write_text("\n".join(entries))
    result = provider("register", "--from", str(tmp_path / "l.jsonl"), "--later", "--json")
    assert (result.exit_code, lines(result.stdout)) == (3, [{"uri": document["uri"], "position": 2}])
    assert [each["document"].rpartition(" ")[2] for each in lines(result.stderr)] == ["2", "3", "4"]
    assert "position 3" in provider("register", DOC, str(EXAMPLES / "host.rdf"), "--later").stdout
    assert provider("documents", "--json").stdout == ""
    assert "position 4" in provider("remove", document["uri"], "--later").stdout
    provider("register", "http://example.org/other.rdf", str(EXAMPLES / "host.rdf"))
    assert len(lines(provider("documents", "--json").stdout)) == 2


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "the document is missing"),
        (("--from", "."), "--base"),
        (("--from", "nowhere", "--base", "http://example.org/"), "no folder"),
        (("--from", "lines.jsonl", "--base", "http://example.org/"), "--base is for"),
        ((DOC, "host.rdf", "--from", "."), "URI and --from exclude each other"),
        ((DOC, "host.rdf", "--base", "http://example.org/"), "--base is for"),
    ],
)
def test_register_ambiguous_options_are_rejected(provider, words: tuple[str, ...], message: str) -> None:
    result = provider("register", *words)
    assert result.exit_code == 2 and message in result.stderr


def test_log_is_printed_and_trimmed(provider, tmp_path) -> None:
    provider("register", DOC, str(EXAMPLES / "host.rdf"))
    shown = lines(provider("log", "--json").stdout)
    assert [(each["position"], each["what"], each["uri"]) for each in shown] == [
        (1, "schema", ""),
        (2, "register", DOC),
    ]
    assert lines(provider("catch-up", "--json").stdout) == [{"position": 2, "applied": 0, "batches": 0}]
    assert lines(provider("trim", "--keep", "1", "--json").stdout) == [{"trimmed": 1, "first": 2}]
    assert [each["position"] for each in lines(provider("log", "--json").stdout)] == [2]
    assert provider("log", "--after", "0").exit_code == 2


def test_restore_of_snapshot_makes_equal_provider(provider, tidings: Tidings, tmp_path) -> None:
    provider("register", DOC, str(EXAMPLES / "host.rdf"))
    file, home = tmp_path / "metadata.jsonl", str(tmp_path / "second")
    file.write_text(provider("snapshot").stdout)
    result = tidings("provider", "restore", str(file), "--home", home, "--json")
    assert lines(result.stdout) == [{"position": 2, "documents": 1}]
    shown = tidings("provider", "documents", "--home", home, "--json").stdout
    assert shown == provider("documents", "--json").stdout
    file.write_text("[]")
    assert tidings("provider", "restore", str(file), "--home", home).exit_code == 2
    assert tidings("provider", "restore", str(tmp_path / "none"), "--home", home).exit_code == 2


def test_rules_of_file_are_added_at_once(provider, tmp_path: Path) -> None:
    provider("register", DOC, str(EXAMPLES / "host.rdf"))
    file = tmp_path / "rules.txt"
    file.write_text(f"# ours\nlarge: {RULE}\nall: search CycleProvider c\n  register c\n")
    result = provider("rules", str(file), "--as", "ana", "--no-spark")
    assert result.stdout.splitlines() == [
        f"all  entered  {DOC}#host",
        f"large  entered  {DOC}#info",
        "2 rules, 2 entered",
    ]
    assert [each["name"] for each in lines(provider("rules", "--json").stdout)] == ["all", "large"]
    again = provider("rules", str(file), "--as", "ana")
    assert again.exit_code == 2 and "already" in again.stderr
    file.write_text(RULE.replace("search", "wrong: search").replace("memory", "memry"))
    wrong = provider("rules", str(file), "--as", "ana")
    assert wrong.exit_code == 2 and "rules.txt" in wrong.stderr and "memry" in wrong.stderr


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--as", "ana"), "the rules to add are missing"),
        (("nowhere.txt",), "the owner of the rules is missing"),
        (("nowhere.txt", "--as", "ana"), "cannot read"),
        (("nowhere.txt", "--as", "ana", "--within", "soon"), "soon"),
    ],
)
def test_rules_missing_file_or_owner_is_rejected(provider, words: tuple[str, ...], message: str) -> None:
    result = provider("rules", *words)
    assert result.exit_code == 2 and message in result.stderr


def test_rules_with_taken_names_are_rejected_before_spark_starts(provider, tmp_path: Path) -> None:
    provider("register", DOC, str(EXAMPLES / "host.rdf"))
    file = tmp_path / "rules.txt"
    file.write_text(f"large: {RULE}\n")
    assert provider("rules", str(file), "--as", "ana", "--no-spark").exit_code == 0
    file.write_text(f"large: {RULE.replace('64', '65')}\nother: {RULE.replace('64', '66')}\n")
    again = provider("rules", str(file), "--as", "ana", "--spark")
    assert again.exit_code == 2 and "a rule of this name already exists" in again.stderr
    assert "on Spark" not in again.stderr
