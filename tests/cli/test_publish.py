"""`publish`: one event, files and standard input, with errors and exit codes."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path

import pytest

from tests.support.processes.command_line import Tidings, start
from tidings.cli import inputs
from tidings.spark.sources import files

TABLE = {"event_type": ["antiques", "furniture"], "price": 180, "quantity": 2, "period": "XVI"}
TABLE |= {"furniture_category": "table"}


def test_publish_prints_id_and_position(furniture: Tidings) -> None:
    first, second = furniture("publish", json.dumps(TABLE)), furniture("publish", json.dumps(TABLE))
    assert first.exit_code == 0
    assert re.fullmatch(r"p-[0-9a-f]{8}  position 1\n", first.stdout)
    assert re.fullmatch(r"p-[0-9a-f]{8}  position 2\n", second.stdout)


def test_publish_event_without_mandatory_attribute_is_rejected_by_rule_r2(furniture: Tidings) -> None:
    event = {"event_type": ["antiques", "furniture"], "price": 100, "quantity": 1, "period": "XVIII"}
    result = furniture("publish", json.dumps(event))
    assert result.exit_code == 2
    assert result.stderr == "refused: furniture_category is mandatory for furniture (rule R2)\n"


@pytest.mark.parametrize("text", ["{", "[1]", '"words"', '{"a": NaN}', '{"a": 1, "a": 2}'])
def test_publish_invalid_event_is_rejected(tidings: Tidings, text: str) -> None:
    result = tidings("publish", text)
    assert result.exit_code == 2
    assert result.stderr.startswith("refused: ")


def test_publish_same_id_is_idempotent_or_rejected(tidings: Tidings) -> None:
    assert tidings("publish", '{"a": 1}', "--id", "p1").stdout == "p1  position 1\n"
    assert tidings("publish", '{"a": 1}', "--id", "p1").stdout == "p1  position 1  published before\n"
    other = tidings("publish", '{"a": 2}', "--id", "p1")
    assert other.exit_code == 2
    assert "'p1'" in other.stderr


def test_publish_json_file_is_one_event(tidings: Tidings) -> None:
    Path("event.json").write_text('{\n  "a": 1\n}\n')
    result = tidings("publish", "event.json", "--id", "p1", "--json")
    assert json.loads(result.stdout) == {"id": "p1", "position": 1, "new": True}


def test_publish_cloud_event_keeps_its_id(tidings: Tidings) -> None:
    event = {"specversion": "1.0", "id": "7", "source": "/shop", "type": "sold", "data": {"price": 1}}
    assert tidings("publish", json.dumps(event)).stdout == "7  position 1\n"
    assert tidings("publish", json.dumps(event)).stdout == "7  position 1  published before\n"
    assert tidings("publish", json.dumps(event), "--id", "mine").stdout == "mine  position 2\n"
    Path("events.jsonl").write_text("".join(json.dumps(event | {"id": id}) + "\n" for id in ("7", "8")))
    several = [json.loads(line) for line in tidings("publish", "events.jsonl", "--json").stdout.splitlines()]
    assert [(one["id"], one["position"], one["new"]) for one in several] == [("7", 1, False), ("8", 3, True)]


def test_publish_lines_reports_invalid_ones(furniture: Tidings) -> None:
    Path("events.jsonl").write_text(
        f'{json.dumps(TABLE)}\n\n{{"price": "dear"}}\nnonsense\n{json.dumps(TABLE)}'
    )
    result = furniture("publish", "events.jsonl")
    assert result.exit_code == 3
    assert result.stdout == "2 events published, 2 refused\n"
    refused = result.stderr.splitlines()
    assert [line.split(": ")[1] for line in refused] == ["events.jsonl, line 3", "events.jsonl, line 4"]


def test_publish_lines_id_field_sets_ids(tidings: Tidings) -> None:
    Path("events.jsonl").write_text('{"lot": "x1"}\n{"lot": 7}\n')
    result = tidings("publish", "events.jsonl", "--id-field", "lot", "--json")
    assert [json.loads(line)["id"] for line in result.stdout.splitlines()] == ["x1", "7"]
    again = tidings("publish", "events.jsonl", "--id-field", "lot")
    assert again.stdout == "0 events published, 2 known already\n"


@pytest.mark.parametrize("name", ["e.ndjson", "e.jsonl.gz", "e.ndjson.gz"])
def test_publish_accepts_line_suffixes_of_stream(tidings: Tidings, name: str) -> None:
    assert (inputs.LINE_SUFFIXES, inputs.COMPRESSED_SUFFIXES) == (
        files.LINE_SUFFIXES,
        files.COMPRESSED_SUFFIXES,
    )
    lines = b'{"a": 1}\n{"a": 2}\n'
    Path(name).write_bytes(gzip.compress(lines) if name.endswith(".gz") else lines)
    result = tidings("publish", name)
    assert (result.exit_code, result.stdout) == (0, "2 events published\n")


@pytest.mark.parametrize("cut", [-4, 12])
def test_publish_damaged_file_is_rejected(tidings: Tidings, cut: int) -> None:
    Path("e.jsonl.gz").write_bytes(gzip.compress(b'{"a": 1}\n')[:cut])
    result = tidings("publish", "e.jsonl.gz")
    assert result.exit_code == 2
    assert result.stderr.startswith("error: the file is damaged (e.jsonl.gz)")


def test_publish_standard_input_is_lines(tidings: Tidings) -> None:
    result = tidings("publish", "-", given='{"a": 1}\n{"a": 2}\n{"a": 3}')
    assert (result.exit_code, result.stdout) == (0, "3 events published\n")


def test_publish_standard_input_publishes_without_waiting_for_end(tmp_path: Path) -> None:
    """Each line is published while the producer goes on."""
    publisher = start("publish", "-", "--json", cwd=tmp_path, stdin=-1)
    assert publisher.stdin and publisher.stdout
    for position in (1, 2):
        publisher.stdin.write('{"a": 1}\n')
        publisher.stdin.flush()
        assert json.loads(publisher.stdout.readline())["position"] == position
    publisher.communicate()
    assert publisher.returncode == 0


@pytest.mark.parametrize("path", ["nowhere.json", "nowhere.jsonl", "price < 3"])
def test_publish_missing_file_error_states_accepted_input(tidings: Tidings, path: str) -> None:
    result = tidings("publish", path)
    assert result.exit_code == 2
    assert f"no file '{path}'" in result.stderr
    assert ".jsonl file" in result.stderr


def test_publish_id_and_id_field_invalid_uses_are_rejected(tidings: Tidings) -> None:
    assert "--id-field" in tidings("publish", "-", "--id", "p1", given="").stderr
    assert (
        "--id and --id-field exclude each other"
        in tidings("publish", "{}", "--id-field", "lot", "--id", "p1").stderr
    )
    assert "only events have a field" in tidings("publish", "<a/>", "--id-field", "lot").stderr


def test_publish_id_field_sets_id_only_if_requested(tidings: Tidings) -> None:
    body = '{"id": "zz1", "price": 5}'
    plain = [json.loads(tidings("publish", body, "--json").stdout) for _ in range(2)]
    assert [one["new"] for one in plain] == [True, True] and "zz1" not in {one["id"] for one in plain}
    named = [json.loads(tidings("publish", body, "--id-field", "id", "--json").stdout) for _ in range(2)]
    assert [(one["id"], one["new"]) for one in named] == [("zz1", True), ("zz1", False)]
    assert tidings("publish", '{"price": 5}', "--id-field", "id").exit_code == 0
