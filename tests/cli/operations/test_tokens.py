"""`tidings token`: create, list, revoke, and invalid input."""

from __future__ import annotations

import json

from tests.support.processes.command_line import Tidings


def test_token_make_list_and_revoke(tidings: Tidings) -> None:
    created = tidings("token", "make", "ana's phone", "--as", "ana", "--json")
    record = json.loads(created.stdout)
    assert record["token"].startswith("tdg_")
    assert (record["id"], record["scopes"], record["subscriber"]) == ("t-1", ["subscribe"], "ana")
    listed = tidings("token", "list", "--json").stdout
    assert record["token"] not in listed
    assert json.loads(listed)["revoked"] is None
    assert tidings("token", "revoke", "t-1").exit_code == 0
    assert "revoked" in tidings("token", "list").stdout
    again = tidings("token", "revoke", "t-1")
    assert (again.exit_code, "revoked before" in again.stderr) == (3, True)


def test_token_make_invalid_scope_or_subscriber_is_rejected(tidings: Tidings) -> None:
    without_subscriber = tidings("token", "make", "phone")
    assert (without_subscriber.exit_code, "--as NAME" in without_subscriber.stderr) == (2, True)
    scope = tidings("token", "make", "phone", "--scope", "read")
    assert (scope.exit_code, "accepted: publish, subscribe, administer" in scope.stderr) == (2, True)
    assert "no tokens" in tidings("token", "list").output
