"""`tidings audience` and `tidings publish --audience`."""

from __future__ import annotations

import json

from tests.support.processes.command_line import Tidings


def test_audience_grant_list_and_revoke(tidings: Tidings) -> None:
    assert tidings("audience", "grant", "board", "--as", "ana").stdout == "board  ana may see it\n"
    again = tidings("audience", "grant", "board", "--as", "ana", "--json")
    assert json.loads(again.stdout) == {"label": "board", "subscriber": "ana", "new": False}
    [listed] = tidings("audience", "list", "--json").stdout.splitlines()
    assert json.loads(listed)["label"] == "board"
    assert "no grants" in tidings("audience", "list", "--as", "bo").output
    assert tidings("audience", "revoke", "board", "--as", "ana").exit_code == 0
    repeated = tidings("audience", "revoke", "board", "--as", "ana")
    assert (repeated.exit_code, "was not granted it" in repeated.stderr) == (3, True)
    wrong = tidings("audience", "grant", "", "--as", "ana")
    assert (wrong.exit_code, "an audience label" in wrong.stderr) == (2, True)


def test_publish_with_audience_is_idempotent_per_label(tidings: Tidings) -> None:
    assert tidings("publish", "{}", "--id", "p-1", "--audience", "board").exit_code == 0
    assert "published before" in tidings("publish", "{}", "--id", "p-1", "--audience", "board").stdout
    other = tidings("publish", "{}", "--id", "p-1")
    assert (other.exit_code, "already used" in other.stderr) == (2, True)
    assert tidings("publish", "-", "--audience", "board", given="{}\n{}\n").exit_code == 0


def test_publish_invalid_audience_is_reported_once_for_all_lines(tidings: Tidings) -> None:
    result = tidings("publish", "-", "--audience", "a\nb", given="{}\n" * 3)
    message = "error: an audience label has only characters that can be shown; received 'a\\nb'\n"
    assert (result.exit_code, result.stdout, result.stderr) == (2, "", message)
