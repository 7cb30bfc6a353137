"""`rejects`: all dead letters, read in pages."""

from __future__ import annotations

import json
from pathlib import Path

from tests.support.processes.command_line import Tidings
from tidings.store.database import sqlite_url
from tidings.store.dead_letters import DeadLetter
from tidings.store.store import open_store

LETTERS = 2_300


def test_rejects_lists_all_dead_letters_or_up_to_limit(tidings: Tidings) -> None:
    Path(".tidings").mkdir()
    with open_store(sqlite_url(Path(".tidings/store.db"))) as store:
        store.dead_letters.add("folder in", [DeadLetter(f"a:{i}", "not JSON", {}) for i in range(LETTERS)])
    listed = [json.loads(line) for line in tidings("rejects", "--json").stdout.splitlines()]
    assert [one["number"] for one in listed] == list(range(1, LETTERS + 1))
    assert len(tidings("rejects").stdout.splitlines()) == LETTERS + 1
    some = tidings("rejects", "--json", "--after", "2000", "--limit", "2").stdout.splitlines()
    assert [json.loads(line)["number"] for line in some] == [2001, 2002]


def test_rejects_without_dead_letters_states_so(tidings: Tidings) -> None:
    assert tidings("rejects").stderr == "no dead letters\n"


def test_rejects_of_pair_names_its_subscription(tidings: Tidings) -> None:
    Path(".tidings").mkdir()
    with open_store(sqlite_url(Path(".tidings/store.db"))) as store:
        pair = DeadLetter("p-1", "takes too long", {}, 1, b"{}", subscription="s-1")
        store.dead_letters.add("journal", [DeadLetter("p-0", "not JSON", {}, 2), pair])
    shown = [line.split() for line in tidings("rejects").stdout.splitlines()]
    assert shown == [
        ["source", "publication", "subscription", "reason"],
        ["#1", "journal", "p-0", "not", "JSON"],
        ["#2", "journal", "p-1", "s-1", "takes", "too", "long"],
    ]
    listed = [json.loads(line) for line in tidings("rejects", "--json").stdout.splitlines()]
    assert [one["subscription"] for one in listed] == [None, "s-1"]
