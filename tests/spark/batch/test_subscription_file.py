"""Subscription files: valid lines are used, bad ones are rejected with number and reason."""

from __future__ import annotations

import json

import pytest

from tidings.errors import InputError
from tidings.spark.batch.subscription_file import read_subscription_blocks, read_subscriptions


def write_lines(tmp_path, *lines):
    path = tmp_path / "subs.jsonl"
    path.write_text("\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines))
    return path


GOOD = {"id": "s1", "subscriber": "ana", "text": "price < 200"}


def test_read_subscriptions_valid_lines_are_all_returned(tmp_path):
    path = write_lines(tmp_path, GOOD, "", {**GOOD, "id": "s2", "language": "xpath", "more": [1]})
    file = read_subscriptions(path)
    assert [tuple(row.values()) for row in file.subscriptions.to_pylist()] == [
        ("s1", "ana", "predicates", "price < 200"),
        ("s2", "ana", "xpath", "price < 200"),
    ]
    assert file.rejects == ()


@pytest.mark.parametrize("more", [(), ("{",)], ids=["in columns", "line by line"])
def test_read_subscriptions_skips_paused_subscriptions(tmp_path, more):
    """Other values of `state` are ignored, as are members with other names."""
    states = ("paused", "active", None, "CA")
    lines = [{**GOOD, "id": f"s{n}", "state": state} for n, state in enumerate(states)]
    file = read_subscriptions(write_lines(tmp_path, *lines, {**GOOD, "id": "s4"}, *more))
    assert file.subscriptions["id"].to_pylist() == ["s1", "s2", "s3", "s4"]
    assert len(file.rejects) == len(more)


@pytest.mark.parametrize(
    ("line", "id", "reason"),
    [
        ("{", "subs.jsonl:2", "not JSON"),
        ("[]", "subs.jsonl:2", "not a JSON object"),
        ({**GOOD, "id": "s2", "text": None}, "s2", "the field 'text' is missing"),
        ({**GOOD, "id": 7}, "subs.jsonl:2", "the field 'id' is not a string"),
        ({**GOOD, "id": ""}, "subs.jsonl:2", "the field 'id' is empty"),
        (
            '{"id": "s2", "subscriber": "a\\ud800", "text": "a = 1"}',
            "s2",
            "the field 'subscriber' is not a string",
        ),
        (
            {**GOOD, "id": "s2", "within": "soon"},
            "s2",
            "the field 'within': not a duration; received 'soon'",
        ),
        (
            {**GOOD, "id": "s2", "within": 600},
            "s2",
            "the field 'within': not a duration; received '600'",
        ),
        ({**GOOD, "id": "s2", "within": "0 s"}, "s2", "the field 'within': duration out of range"),
        (GOOD, "s1", "an earlier line has the same id 's1'"),
    ],
)
def test_read_subscriptions_bad_line_is_rejected_and_others_returned(tmp_path, line, id, reason):
    file = read_subscriptions(write_lines(tmp_path, GOOD, line, {**GOOD, "id": "s3"}))
    assert file.subscriptions["id"].to_pylist() == ["s1", "s3"]
    (reject,) = file.rejects
    assert (reject.what, reject.id) == ("subscription", id)
    assert reject.reason.startswith(reason)
    assert reject.facts == {"file": "subs.jsonl", "line": 2}


def test_read_subscriptions_delay_is_validated_and_dropped(tmp_path):
    delayed = {**GOOD, "id": "s2", "within": "10 minutes"}
    file = read_subscriptions(write_lines(tmp_path, GOOD, delayed, {**GOOD, "id": "s3", "within": None}))
    assert file.rejects == ()
    assert file.subscriptions.column_names == ["id", "subscriber", "language", "text"]
    assert file.subscriptions["id"].to_pylist() == ["s1", "s2", "s3"]


def test_read_subscriptions_empty_file_has_none(tmp_path):
    assert read_subscriptions(write_lines(tmp_path)).subscriptions.num_rows == 0


def test_read_subscriptions_missing_file_is_rejected(tmp_path):
    with pytest.raises(InputError, match="there is no such file"):
        read_subscriptions(tmp_path / "subs.jsonl")


def test_read_subscription_blocks_have_whole_lines_and_their_numbers(tmp_path):
    """However a file is cut, it has the same subscriptions and rejects as when it is read at once."""
    lines = [{**GOOD, "id": f"s{n}", "text": f"price < {n}"} for n in range(9)]
    path = write_lines(tmp_path, *lines[:4], "{", "", *lines[4:], "[]", "")
    whole = read_subscriptions(path)
    size = path.stat().st_size
    for block in (80, 200, size - 1, size, size + 1):
        parts = [*read_subscription_blocks(path, block)]
        assert [row for part in parts for row in part.subscriptions.to_pylist()] == (
            whole.subscriptions.to_pylist()
        )
        assert [reject for part in parts for reject in part.rejects] == [*whole.rejects]
    assert len(parts) == 1


def test_read_subscription_blocks_refuse_a_line_longer_than_a_block(tmp_path):
    path = write_lines(tmp_path, GOOD, {**GOOD, "id": "s2", "text": "price < 1" + " " * 300})
    with pytest.raises(InputError, match=r"a line of more than .*subs\.jsonl, line 2"):
        [*read_subscription_blocks(path, 100)]
