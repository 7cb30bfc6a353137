"""The dependency graph of rules as a picture: `rules graph`."""

from __future__ import annotations

import re
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from lxml import etree

from tests.support.processes.command_line import EXAMPLES, Tidings
from tidings.core.drawing.picture import Edge, Picture
from tidings.metadata.filter.rule_picture import MAX_BOXES, build_rule_picture, draw_rule_kinds
from tidings.metadata.provider.provider import Provider
from tidings.metadata.sql.rule_graph import RuleKind, RuleKindCount, RuleKindGraph
from tidings.store.database import sqlite_url
from tidings.store.store import Store, open_store

DOCS = EXAMPLES.parent / "docs"
OF = "search CycleProvider c register c"
PASSAU = (
    f"{OF} where c.serverHost contains 'uni-passau.de' and c.serverInformation.memory > 64 "
    "and c.serverInformation.cpu > 500"
)
LARGE = f"{OF} where c.serverInformation.memory > 64"


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_store(sqlite_url(tmp_path / "s.db")) as opened:
        provider = Provider(opened)
        provider.load_schema((EXAMPLES / "metadata/schema.ttl").read_bytes(), "text/turtle")
        body = (EXAMPLES / "metadata/host.rdf").read_bytes()
        provider.register("http://example.org/doc.rdf", body, "application/rdf+xml")
        yield opened


def boxes_of(picture: Picture) -> dict[str, tuple[int, str, str, str | None]]:
    return {box.title: (box.layer, box.text, box.count, box.group) for box in picture.boxes}


def test_rule_picture_shows_example_of_paper(store: Store) -> None:
    """The tree of figure 5, with the numbers and groups of figure 7 and the results of figure 9."""
    Provider(store).add_rules({"passau": PASSAU}, "ana")
    picture = build_rule_picture(store)
    assert boxes_of(picture) == {
        "#1 ServerInformation": (0, "memory > 64", "1 result", None),
        "#2 ServerInformation": (0, "cpu > 500", "1 result", None),
        "#3 CycleProvider": (0, "serverHost contains 'uni-passau.de'", "1 result", None),
        "#4 ServerInformation": (1, "#1 = #2", "1 result", "group 1"),
        "#5 CycleProvider": (2, "#3.serverInformation = #4", "1 result", "group 2"),
        "passau": (3, "of ana", "1 result", None),
    }
    assert set(picture.edges) == {
        Edge("#1", "#4"),
        Edge("#2", "#4"),
        Edge("#3", "#5"),
        Edge("#4", "#5"),
        Edge("#5", "rule passau"),
    }
    assert picture.layers == ("triggering\nrules", "join rules,\nlevel 1", "join rules,\nlevel 2", "rules")
    for sentence in (
        "Rule passau of ana has the results of #5: 1 result.",
        "#4, group 1, ServerInformation with #1 = #2: 1 result.",
    ):
        assert sentence in picture.description


def test_rule_picture_shows_all_comparisons_of_join(store: Store) -> None:
    Provider(store).add_rules({"near": f"{OF} where c.serverInformation.cpu < c.serverPort"}, "ana")
    Provider(store).add_rules({"free": "search ServerInformation s register s where s.memory < s.cpu"}, "ana")
    texts = {title: box[1] for title, box in boxes_of(build_rule_picture(store)).items()}
    assert texts == {
        "#1 ServerInformation": "all of the class",
        "#2 CycleProvider": "all of the class",
        "#3 CycleProvider": "#2.serverInformation = #1 and #2.serverPort > #1.cpu",
        "#4 ServerInformation": "#1 = #1 and #1.cpu > #1.memory",
        "near": "of ana",
        "free": "of ana",
    }
    kinds = {box.text for box in build_rule_picture(store, max_boxes=5).boxes}
    assert {
        "CycleProvider.serverInformation = ServerInformation and CycleProvider.serverPort > ServerInformation.cpu",
        "ServerInformation = ServerInformation and ServerInformation.cpu > ServerInformation.memory",
    } <= kinds


def test_rule_picture_shares_boxes_of_equal_subrules(store: Store) -> None:
    Provider(store).add_rules({"passau": PASSAU, "large": LARGE, "again": LARGE}, "ana")
    picture = build_rule_picture(store)
    memory = [box.key for box in picture.boxes if box.text == "memory > 64"]
    assert len(memory) == 1
    assert sum(edge.source == memory[0] for edge in picture.edges) == 2
    ends = {edge.source for edge in picture.edges if edge.target in ("rule large", "rule again")}
    assert len(ends) == 1
    groups = [
        box.group for box in picture.boxes if box.text.startswith("#") and "serverInformation" in box.text
    ]
    assert len(groups) == 2 and len(set(groups)) == 1  # different inputs, the same join condition


def test_rule_picture_of_some_rules_shows_them_only(store: Store) -> None:
    one = f"{OF} where c = <http://example.org/doc.rdf#host>"
    Provider(store).add_rules({"passau": PASSAU, "all": OF, "one": one}, "ana")
    assert [box[1] for box in boxes_of(build_rule_picture(store, ["all", "one", "all"])).values()] == [
        "all of the class",
        "= <http://example.org/doc.rdf#host>",
        "of ana",
        "of ana",
    ]


def test_rule_picture_of_large_rule_base_groups_by_kind(store: Store) -> None:
    provider = Provider(store)
    provider.add_rules({f"m{i}": f"{OF} where c.serverInformation.memory > {i}" for i in range(200)}, "ana")
    provider.add_rules({"fast": f"{OF} where c.serverInformation.cpu > 500", "all": OF}, "bob")
    picture = build_rule_picture(store)
    assert sorted((box.layer, box.title, box.text, box.count, box.group or "") for box in picture.boxes) == [
        (0, "1 triggering rule", "ServerInformation.cpu > …", "1 result", ""),
        (0, "1 triggering rule", "all of CycleProvider", "1 result", ""),
        (0, "200 triggering rules", "ServerInformation.memory > …", "92 results", ""),
        (1, "201 join rules", "CycleProvider.serverInformation = ServerInformation", "93 results", "group 1"),
        (2, "2 rules", "of bob", "2 results", ""),
        (2, "200 rules", "of ana", "92 results", ""),
    ]
    labels = sorted(edge.label for edge in picture.edges)
    assert labels == ["1", "1", "1", "200", "200", "201"]
    assert "too many to draw" in picture.notes[0] and "--rule NAME" in picture.notes[1]
    assert len(build_rule_picture(store, ["m7"]).boxes) == 4


def test_draw_rule_kinds_over_limit_merges_kinds() -> None:
    def kinds(owners: int, properties: int, classes: int) -> RuleKindGraph:
        counts = {RuleKind(-1, owner=f"o{i}"): RuleKindCount(2, 1) for i in range(owners)}
        counts |= {
            RuleKind(0, f"C{c}", f"p{p}", "="): RuleKindCount(3, 4)
            for c in range(classes)
            for p in range(properties)
        }
        source = RuleKind(0, "C0", "p0", "=")
        return RuleKindGraph(counts, {(source, RuleKind(-1, owner=f"o{i}")): 1 for i in range(owners)}, {})

    assert len(draw_rule_kinds(kinds(5, 5, 5), MAX_BOXES).boxes) == 5 + 25
    owners = draw_rule_kinds(kinds(100, 5, 5), MAX_BOXES)
    assert boxes_of(owners)["200 rules"] == (1, "of all owners", "100 results", None)
    assert (len(owners.boxes), [edge.label for edge in owners.edges]) == (26, ["100"])
    assert len(draw_rule_kinds(kinds(1, 50, 10), MAX_BOXES).boxes) == 1 + 10
    assert boxes_of(draw_rule_kinds(kinds(1, 2, 100), MAX_BOXES)) == {
        "2 rules": (1, "of all owners", "1 result", None),
        "600 triggering rules": (0, "of all classes", "800 results", None),
    }


def commands() -> list[list[str]]:
    """Return the commands of the page with the picture."""
    return [
        shlex.split(line)[1:]
        for line in re.findall(r"^\$ (tidings .*)$", (DOCS / "rules.md").read_text(), re.M)
    ]


def test_rules_page_commands_draw_its_picture(tidings: Tidings) -> None:
    shutil.copytree(EXAMPLES, "examples")
    assert commands()[-1] == ["rules", "graph", "--out", "rules-graph.svg"]
    for words in commands():
        assert tidings(*words).exit_code == 0
    assert Path("rules-graph.svg").read_text() == (DOCS / "img/rules-graph.svg").read_text()


def test_rules_graph_without_out_prints_svg(tidings: Tidings) -> None:
    for words in commands_of_example():
        tidings(*words)
    result = tidings("rules", "graph", "--rule", "large")
    assert etree.fromstring(result.stdout.encode()).tag == "{http://www.w3.org/2000/svg}svg"
    assert ("large" in result.stdout, "passau" in result.stdout, result.stderr) == (True, False, "")
    assert tidings("rules", "graph", "--out", "x.svg").stderr.startswith("x.svg: 2 rules, 7 atomic rules.")


def commands_of_example() -> Iterator[list[str]]:
    yield ["provider", "schema", str(EXAMPLES / "metadata/schema.ttl")]
    yield ["provider", "rule", "passau", PASSAU, "--as", "ana"]
    yield ["provider", "rule", "large", LARGE, "--as", "bob"]


def test_rules_graph_invalid_options_are_rejected(tidings: Tidings) -> None:
    for words in commands_of_example():
        tidings(*words)
    unknown = tidings("rules", "graph", "--rule", "larg")
    assert (unknown.exit_code, unknown.stdout) == (2, "") and "did you mean 'large'?" in unknown.stderr
    nowhere = tidings("rules", "graph", "--out", "no/folder/x.svg")
    assert nowhere.exit_code == 2 and "cannot write the picture" in nowhere.stderr
    bitmap = tidings("rules", "graph", "--out", "x.png")
    assert bitmap.exit_code == 2 and "the picture is an SVG" in bitmap.stderr and not Path("x.png").exists()


def test_rules_graph_without_rules_is_empty(tidings: Tidings) -> None:
    result = tidings("rules", "graph")
    assert result.exit_code == 0 and "0 rules, 0 atomic rules" in result.stdout
    etree.fromstring(result.stdout.encode())
