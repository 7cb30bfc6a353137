"""`subscribe`, `unsubscribe`, `subscriptions` and `change`, with their errors."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.support.processes.command_line import Tidings
from tidings.service.tidings import Tidings as Service
from tidings.store.dead_letters import DeadLetter
from tidings.store.encoding import MatchRow

DINING = "furniture_category is a 'dining room' and price < 200"


def test_subscribe_prints_id_and_access_path(furniture: Tidings) -> None:
    result = furniture("subscribe", "--as", "ana", DINING)
    line = r"s-[0-9a-f]{8}  ana  predicates  2 predicates, reached through furniture_category\n"
    assert result.exit_code == 0
    assert re.fullmatch(line, result.stdout)


def test_subscribe_incomplete_text_is_underlined_at_end(furniture: Tidings) -> None:
    result = furniture("subscribe", "--as", "ana", "prise < 200 and")
    assert result.exit_code == 2
    assert result.stdout == ""
    assert result.stderr.splitlines() == [
        "error: expected a predicate after 'and' (column 16)",
        "  prise < 200 and",
        "                 ^",
    ]


def test_subscribe_unknown_attribute_is_underlined_with_hint(furniture: Tidings) -> None:
    result = furniture("subscribe", "--as", "ana", "prise < 200")
    assert result.exit_code == 2
    assert result.stderr.splitlines() == [
        "error: no event type has an attribute 'prise' (column 1)",
        "  prise < 200",
        "  ^^^^^   did you mean 'price'?",
    ]


def test_subscribe_json_error_has_same_facts(furniture: Tidings) -> None:
    result = furniture("subscribe", "--as", "ana", "prise < 200", "--json")
    facts = json.loads(result.stderr)
    assert result.exit_code == 2
    assert facts["error"] == "CheckProblem"
    assert facts["place"] == {"line": 1, "column": 1, "length": 5}
    assert facts["hint"] == "did you mean 'price'?"


def test_subscribe_same_id_is_idempotent_or_rejected(tidings: Tidings) -> None:
    assert tidings("subscribe", "--as", "ana", "a = 1", "--id", "mine").exit_code == 0
    assert tidings("subscribe", "--as", "ana", "a = 1", "--id", "mine").exit_code == 0
    other = tidings("subscribe", "--as", "ana", "a = 2", "--id", "mine")
    assert other.exit_code == 2
    assert "mine" in other.stderr


def test_subscribe_unknown_language_error_lists_languages(tidings: Tidings) -> None:
    result = tidings("subscribe", "--as", "ana", "a = 1", "--language", "prose")
    assert result.exit_code == 2
    assert "'prose'; accepted: predicates" in result.stderr


def test_subscribe_text_of_other_language_is_rejected_with_hint(tidings: Tidings) -> None:
    sparql = tidings("subscribe", "--as", "ana", "SELECT ?x { ?x dc:title ?t }")
    assert sparql.exit_code == 2
    assert sparql.stderr.splitlines() == [
        "error: unexpected character '?' (column 8); accepted: an operator",
        "  SELECT ?x { ?x dc:title ?t }",
        "         ^   GQL or SPARQL? the language is gql: --language gql",
    ]
    event = tidings("subscribe", "--as", "ana", "--language", "gql", "price < 200")
    assert event.exit_code == 2 and "--language predicates" in event.stderr
    named = tidings("subscribe", "--as", "ana", "--language", "sparql", "SELECT ?x { ?x dc:title ?t }")
    assert named.exit_code == 2 and "SPARQL are accepted: name the language gql" in named.stderr


def test_subscriptions_lists_all_or_those_of_subscriber(tidings: Tidings) -> None:
    tidings("subscribe", "--as", "ana", "a = 1", "--id", "s1")
    tidings("subscribe", "--as", "bo", "b = 'x'", "--id", "s2")
    everything = tidings("subscriptions").stdout.splitlines()
    assert [row.split() for row in everything][1:] == [
        ["s1", "ana", "predicates", "a", "=", "1"],
        ["s2", "bo", "predicates", "b", "=", "'x'"],
    ]
    own = tidings("subscriptions", "--as", "bo", "--json").stdout.splitlines()
    assert [json.loads(row) for row in own] == [
        {"id": "s2", "subscriber": "bo", "language": "predicates", "text": "b = 'x'", "within": None}
    ]


def test_subscribe_within_is_normalized_and_listed(tidings: Tidings) -> None:
    result = tidings("subscribe", "--as", "ana", "a = 1", "--id", "s1", "--within", "600 s")
    assert (
        result.stdout == "s1  ana  predicates  1 predicate, reached through a, notified within 10 minutes\n"
    )
    repeated = tidings("subscribe", "--as", "ana", "a = 1", "--id", "s1", "--within", "10 min", "--json")
    assert json.loads(repeated.stdout)["within"] == "10 minutes"
    tidings("subscribe", "--as", "bo", "b = 1", "--id", "s2")
    assert [row.rstrip() for row in tidings("subscriptions").stdout.splitlines()] == [
        "id  subscriber  language    within      text",
        "s1  ana         predicates  10 minutes  a = 1",
        "s2  bo          predicates              b = 1",
    ]
    own = json.loads(tidings("subscriptions", "--as", "ana", "--json").stdout)
    assert own["within"] == "10 minutes"


def test_subscribe_invalid_within_is_rejected(tidings: Tidings) -> None:
    result = tidings("subscribe", "--as", "ana", "a = 1", "--within", "soon")
    assert result.exit_code == 2
    assert result.stderr.startswith(
        "error: not a duration; received 'soon'; accepted: a whole number and a unit"
    )
    assert tidings("subscriptions", "--json").stdout == ""


def test_notifications_deferred_are_counted(tidings: Tidings) -> None:
    tidings("subscribe", "--as", "ana", "a = 1", "--id", "calm", "--within", "1 hour")
    with Service(".tidings") as service:
        service.store.notifications.commit_batch(
            "main", 0, [MatchRow("p", "calm", "ana"), MatchRow("q", "calm", "ana")]
        )
    result = tidings("notifications", "--as", "ana")
    assert result.stdout == ""
    assert re.fullmatch(r"deferred: 2 notifications, the first until \d{4}-.*Z\n", result.stderr)
    assert tidings("notifications", "--as", "ana", "--json").output == ""


def test_subscriptions_without_terminal_do_not_truncate_text(tidings: Tidings) -> None:
    text = " or ".join(f"attribute_{n} = 'value {n}'" for n in range(40))
    tidings("subscribe", "--as", "ana", text)
    assert text in tidings("subscriptions").stdout


def test_unsubscribe_removes_known_and_names_unknown_ids(tidings: Tidings) -> None:
    tidings("subscribe", "--as", "ana", "a = 1", "--id", "s1")
    result = tidings("unsubscribe", "s1", "s9")
    assert result.exit_code == 3
    assert result.stdout == "s1  removed\n"
    assert result.stderr == "s9  there is no such subscription\n"
    assert tidings("subscriptions", "--json").stdout == ""


def test_subscribe_unquoted_text_error_hints_at_quotes(tidings: Tidings) -> None:
    pieces = tidings("subscribe", "--as", "ana", "price", "=", "200")
    assert pieces.exit_code == 2
    assert pieces.stderr == (
        "error: the text came in 3 pieces; received price = 200; "
        'quote the whole text: tidings subscribe --as NAME "price > 200"\n'
    )
    redirected = tidings("subscribe", "--as", "ana", "price")  # what remains of `price > 200` after the shell
    assert redirected.exit_code == 2
    assert "^   quote the whole text" in redirected.stderr


def test_subscriptions_and_notifications_empty_output_states_reason(tidings: Tidings) -> None:
    assert tidings("subscriptions", "--as", "nobody").stderr == "no subscriptions for nobody\n"
    message = tidings("notifications", "--as", "nobody").stderr
    assert message == "nothing for nobody yet; there are no subscriptions for that name\n"
    tidings("subscribe", "--as", "ana", "a = 1")
    message = tidings("notifications", "--as", "ana").stderr
    assert message == "nothing for ana yet; is `tidings run` or `tidings serve` running?\n"


def test_change_pause_and_resume_keep_id(tidings: Tidings) -> None:
    tidings("subscribe", "--as", "ana", "a = 1", "--id", "s1")
    tidings("subscribe", "--as", "ana", "b = 1", "--id", "s2")
    changed = tidings("change", "s1", "a = 2", "--within", "1 hour")
    assert changed.stdout == "s1  ana  predicates  1 predicate, reached through a, notified within 1 hour\n"
    assert json.loads(tidings("change", "s1", "a = 3", "--json").stdout)["within"] == "1 hour"
    assert json.loads(tidings("change", "s1", "--within", "at once", "--json").stdout)["within"] is None
    paused = tidings("pause", "s1", "s9")
    assert (paused.exit_code, paused.stdout) == (3, "s1  paused\n")
    assert paused.stderr == "s9  there is no such subscription\n"
    listed = tidings("subscriptions").stdout.splitlines()
    assert listed[0].split() == ["id", "subscriber", "language", "state", "text"]
    assert listed[-1].split() == ["s1", "ana", "predicates", "paused", "a", "=", "3"]
    states = [
        json.loads(line).get("state") for line in tidings("subscriptions", "--json").stdout.splitlines()
    ]
    assert states == [None, "paused"]
    assert tidings("resume", "s1", "--json").stdout == '{"id": "s1", "state": "active"}\n'
    assert tidings("pause", "s1").exit_code == tidings("unsubscribe", "s1").exit_code == 0
    for words in (["change", "s2"], ["change", "s9", "a = 1"], ["change", "s2", "a ="]):
        assert tidings(*words).exit_code == 2, words


def test_subscribe_file_reports_invalid_lines(furniture: Tidings) -> None:
    lines = [
        {"id": "mine", "text": "price < 200"},
        {"id": "his", "subscriber": "bo", "text": "price < 200"},
        {"text": "prise < 200"},
        {"text": "price < 200", "id": "mine", "within": "1 hour"},
        *({"subscriber": "ana", "text": f"price < {n}"} for n in range(12)),
    ]
    Path("subs.jsonl").write_text("\n".join(map(json.dumps, lines)) + "\n\nno JSON")
    result = furniture("subscribe", "--as", "ana", "--file", "subs.jsonl", "--within", "10 minutes")
    assert (result.exit_code, result.stdout) == (3, "13 subscriptions made, 4 refused\n")
    refused = result.stderr.splitlines()
    assert [line.partition(":")[0] for line in refused] == ["refused"] * 4
    assert refused[0] == (
        "refused: subs.jsonl, line 2: the line is for another subscriber; received bo; accepted: ana; "
        "without --as, each line names its own subscriber"
    )
    assert refused[1].startswith("refused: subs.jsonl, line 3: no event type has an attribute 'prise'")
    assert refused[1].endswith("; did you mean 'price'?")
    assert "line 4: the id 'mine' is already used" in refused[2]
    assert refused[3].startswith("refused: subs.jsonl, line 18: ")
    created = [json.loads(line) for line in furniture("subscriptions", "--json").stdout.splitlines()]
    assert {(one["subscriber"], one["within"]) for one in created} == {("ana", "10 minutes")}
    assert len(created) == 13


def test_subscribe_file_accepts_output_of_subscriptions(tidings: Tidings) -> None:
    """Paused subscriptions come back paused, and `tidings match` skips them: one file serves all commands."""
    assert tidings("subscribe", "--as", "ana", "a = 1", "--within", "1 hour", "--id", "s-1").exit_code == 0
    assert tidings("subscribe", "--as", "bo", "//a", "--language", "xpath", "--id", "s-2").exit_code == 0
    assert tidings("subscribe", "--as", "bo", "a = 2", "--within", "1 hour", "--id", "s-0").exit_code == 0
    assert tidings("pause", "s-0").exit_code == 0
    listed = tidings("subscriptions", "--json").stdout
    assert json.loads(listed.splitlines()[-1])["state"] == "paused"
    again = tidings("subscribe", "--file", "-", given=listed)
    assert (again.exit_code, again.stdout) == (0, "0 subscriptions made, 3 known already\n")
    Path("subs.jsonl").write_text(listed)
    outcomes = tidings("subscribe", "--file", "subs.jsonl", "--home", "other", "--json").stdout.splitlines()
    assert [json.loads(line) for line in outcomes] == [
        {"id": id, "new": True} for id in ("s-1", "s-2", "s-0")
    ]
    assert tidings("subscriptions", "--json", "--home", "other").stdout == listed
    assert tidings("resume", "s-0", "--home", "other").stdout == "s-0  active\n"
    assert json.loads(tidings("subscriptions", "--as", "bo", "--json", "--home", "other").stdout.splitlines()[-1]) == {
        "id": "s-0", "subscriber": "bo", "language": "predicates", "text": "a = 2", "within": "1 hour"
    }  # fmt: skip


def test_subscribe_file_does_not_change_existing_subscriptions(tidings: Tidings) -> None:
    """A line neither pauses an active subscription nor resumes a paused one."""
    tidings("subscribe", "--as", "ana", "a = 1", "--id", "awake")
    tidings("subscribe", "--as", "ana", "a = 1", "--id", "asleep")
    tidings("pause", "asleep")
    before = tidings("subscriptions", "--json").stdout
    line = {"subscriber": "ana", "text": "a = 1"}
    lines = [line | {"id": "awake", "state": "paused"}, line | {"id": "asleep", "state": "active"}]
    lines += [line | {"id": "asleep", "text": "a = 2", "state": "paused"}, line | {"state": "pausd"}]
    result = tidings("subscribe", "--file", "-", given="\n".join(map(json.dumps, lines)))
    assert (result.exit_code, result.stdout) == (3, "0 subscriptions made, 4 refused\n")
    messages = [line.partition(": ")[2].partition(": ")[2] for line in result.stderr.splitlines()]
    assert messages == [
        "the id 'awake' is used for a subscription that is active; pause or remove that one, or leave the id out",
        "the id 'asleep' is used for a subscription that is paused; resume or remove that one, or leave the id out",
        "the id 'asleep' is already used for another subscription; give it an id of its own, leave the id out, or "
        "unsubscribe first",
        "'state' is invalid; received pausd; accepted: 'active' or 'paused'",
    ]
    assert tidings("subscriptions", "--json").stdout == before


def test_subscribe_file_lines_without_subscriber_use_option(tidings: Tidings) -> None:
    line = json.dumps({"text": "//a", "id": "one"})
    refused = tidings("subscribe", "--file", "-", "--json", given=line)
    assert (refused.exit_code, refused.stdout) == (3, "")
    facts = json.loads(refused.stderr)
    assert (facts["where"], facts["what"]) == ("standard input, line 1", "the subscriber is missing")
    result = tidings("subscribe", "--file", "-", "--as", "ana", "--language", "xpath", given=line)
    assert (result.exit_code, result.stdout) == (0, "1 subscription made\n")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ("--language", "xpaht"),
            "error: unknown subscription language; received 'xpaht'; accepted: ",
        ),
        (
            ("--language", "sparql"),
            "error: unknown subscription language; received 'sparql'; accepted: ",
        ),
        (("--within", "soon"), "error: not a duration; received 'soon'; accepted: "),
        (("--within", "0 s"), "error: duration out of range; received 0 s; accepted: "),
        (
            ("--as", "a\nb"),
            "error: a subscriber's name has only characters that can be shown; received 'a\\nb'",
        ),
        (("--as", ""), "error: a subscriber's name has 1 to 500 characters"),
    ],
)
def test_subscribe_file_invalid_option_is_reported_once(
    tidings: Tidings, words: tuple[str, ...], message: str
) -> None:
    """Before any line is read."""
    line = {"subscriber": "ana", "language": "predicates", "text": "a = 1", "within": "1 hour"}
    result = tidings("subscribe", "--file", "-", *words, given=f"{json.dumps(line)}\n" * 3)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith(message) and result.stderr.count("\n") == 1
    assert ("; did you mean 'xpath'?\n" in result.stderr) == ("xpaht" in words)
    assert ("name the language gql\n" in result.stderr) == ("sparql" in words)
    assert tidings("subscriptions", "--json").stdout == ""


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("a = 1", "--file", "subs.jsonl"), "TEXT or --file, not both"),
        (("--file", "subs.jsonl", "--id", "x"), "--id is for one subscription"),
        (("--file", "subs.jsonl"), "no file 'subs.jsonl'; accepted: a .jsonl file"),
        ((), "the text of the subscription is missing; accepted: TEXT, or --file FILE"),
    ],
)
def test_subscribe_requires_text_or_file(tidings: Tidings, words: tuple[str, ...], message: str) -> None:
    result = tidings("subscribe", "--as", "ana", *words)
    assert result.exit_code == 2
    assert result.stderr.startswith(f"error: {message}")


def test_subscribe_without_subscriber_is_rejected(tidings: Tidings) -> None:
    result = tidings("subscribe", "a = 1")
    assert (result.exit_code, result.stderr) == (2, "error: the subscriber is missing; accepted: --as NAME\n")


def test_subscribe_with_empty_range_warns_and_is_accepted(tidings: Tidings) -> None:
    result = tidings("subscribe", "--as", "ana", "price > 6 and price < 4", "--id", "none")
    assert (result.exit_code, result.stdout.split()[0]) == (0, "none")
    assert result.stderr.splitlines() == [
        "warning: no single value of price satisfies both predicates: only an event with several values of price can "
        "match (column 1)",
        "  price > 6 and price < 4",
        "  ^^^^^^^^^^^^^^^^^^^^^^^   join them with 'or' if either is enough",
    ]
    changed = tidings("change", "none", "price < 3 and price > 5", "--json")
    assert [each["place"] for each in json.loads(changed.stdout)["warnings"]] == [
        {"line": 1, "column": 1, "length": 23}
    ]
    fine = tidings("subscribe", "--as", "ana", "price < 3", "--json")
    assert json.loads(fine.stdout)["warnings"] == [] and fine.stderr == ""


def test_suspended_subscription_shows_reason_and_can_be_resumed(tidings: Tidings) -> None:
    assert tidings("subscribe", "--as", "ana", "a = 1", "--id", "s-1").exit_code == 0
    with Service(Path(".tidings")) as service:
        letters = [DeadLetter(f"p-{n}", "too dear", {}, n, subscription="s-1") for n in range(3)]
        service.store.dead_letters.add("journal", letters)
        assert [one.id for one in service.store.overruns.suspend(3)] == ["s-1"]
    assert "suspended: it exceeded the time or memory budget 3 times" in tidings("subscriptions").stdout
    listed = tidings("subscriptions", "--json").stdout
    record = json.loads(listed)
    assert record["state"] == "paused" and record["reason"].startswith("suspended: ")
    again = tidings("subscribe", "--file", "-", "--home", "other", given=listed)
    assert (again.exit_code, again.stdout) == (0, "1 subscription made\n"), "one file serves all"
    output = tidings("notifications", "--as", "ana").stdout
    assert "suspended: it exceeded the time or memory budget 3 times" in output
    assert tidings("resume", "s-1").stdout == "s-1  active\n"
    assert "suspended" not in tidings("subscriptions").stdout
