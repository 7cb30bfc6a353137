"""`subscribe`, `unsubscribe`, `subscriptions`, and how what is wrong with them is said."""

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


def test_subscribe_answers_with_an_id_and_how_it_is_reached(furniture: Tidings) -> None:
    done = furniture("subscribe", "--as", "ana", DINING)
    line = r"s-[0-9a-f]{8}  ana  predicates  2 predicates, reached through furniture_category\n"
    assert done.exit_code == 0
    assert re.fullmatch(line, done.stdout)


def test_a_subscription_that_does_not_end_is_underlined_behind_its_end(furniture: Tidings) -> None:
    done = furniture("subscribe", "--as", "ana", "prise < 200 and")
    assert done.exit_code == 2
    assert done.stdout == ""
    assert done.stderr.splitlines() == [
        "error: expected a predicate after 'and' (column 16)",
        "  prise < 200 and",
        "                 ^",
    ]


def test_an_unknown_attribute_is_underlined_with_a_hint(furniture: Tidings) -> None:
    done = furniture("subscribe", "--as", "ana", "prise < 200")
    assert done.exit_code == 2
    assert done.stderr.splitlines() == [
        "error: no event type has an attribute 'prise' (column 1)",
        "  prise < 200",
        "  ^^^^^   did you mean 'price'?",
    ]


def test_an_error_for_machines_has_the_same_facts(furniture: Tidings) -> None:
    done = furniture("subscribe", "--as", "ana", "prise < 200", "--json")
    facts = json.loads(done.stderr)
    assert done.exit_code == 2
    assert facts["error"] == "CheckProblem"
    assert facts["place"] == {"line": 1, "column": 1, "length": 5}
    assert facts["hint"] == "did you mean 'price'?"


def test_the_same_id_is_the_same_subscription_or_refused(tidings: Tidings) -> None:
    assert tidings("subscribe", "--as", "ana", "a = 1", "--id", "mine").exit_code == 0
    assert tidings("subscribe", "--as", "ana", "a = 1", "--id", "mine").exit_code == 0
    other = tidings("subscribe", "--as", "ana", "a = 2", "--id", "mine")
    assert other.exit_code == 2
    assert "mine" in other.stderr


def test_an_unknown_language_is_refused_with_the_known_ones(tidings: Tidings) -> None:
    done = tidings("subscribe", "--as", "ana", "a = 1", "--language", "prose")
    assert done.exit_code == 2
    assert "'prose'; accepted: predicates" in done.stderr


def test_a_text_in_another_language_than_was_said_is_refused_with_a_hint(tidings: Tidings) -> None:
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


def test_subscriptions_lists_everybodys_or_ones_own(tidings: Tidings) -> None:
    tidings("subscribe", "--as", "ana", "a = 1", "--id", "s1")
    tidings("subscribe", "--as", "bo", "b = 'x'", "--id", "s2")
    everybody = tidings("subscriptions").stdout.splitlines()
    assert [row.split() for row in everybody][1:] == [
        ["s1", "ana", "predicates", "a", "=", "1"],
        ["s2", "bo", "predicates", "b", "=", "'x'"],
    ]
    own = tidings("subscriptions", "--as", "bo", "--json").stdout.splitlines()
    assert [json.loads(row) for row in own] == [
        {"id": "s2", "subscriber": "bo", "language": "predicates", "text": "b = 'x'", "within": None}
    ]


def test_an_accepted_delay_is_shown(tidings: Tidings) -> None:
    done = tidings("subscribe", "--as", "ana", "a = 1", "--id", "s1", "--within", "600 s")
    assert done.stdout == "s1  ana  predicates  1 predicate, reached through a, notified within 10 minutes\n"
    made = tidings("subscribe", "--as", "ana", "a = 1", "--id", "s1", "--within", "10 min", "--json")
    assert json.loads(made.stdout)["within"] == "10 minutes"
    tidings("subscribe", "--as", "bo", "b = 1", "--id", "s2")
    assert [row.rstrip() for row in tidings("subscriptions").stdout.splitlines()] == [
        "id  subscriber  language    within      text",
        "s1  ana         predicates  10 minutes  a = 1",
        "s2  bo          predicates              b = 1",
    ]
    own = json.loads(tidings("subscriptions", "--as", "ana", "--json").stdout)
    assert own["within"] == "10 minutes"


def test_a_delay_that_cannot_be_read_is_refused(tidings: Tidings) -> None:
    done = tidings("subscribe", "--as", "ana", "a = 1", "--within", "soon")
    assert done.exit_code == 2
    assert done.stderr.startswith(
        "error: not a duration; received 'soon'; accepted: a whole number and a unit"
    )
    assert tidings("subscriptions", "--json").stdout == ""


def test_what_waits_is_said(tidings: Tidings) -> None:
    tidings("subscribe", "--as", "ana", "a = 1", "--id", "calm", "--within", "1 hour")
    with Service(".tidings") as service:
        service.store.notifications.commit_batch(
            "main", 0, [MatchRow("p", "calm", "ana"), MatchRow("q", "calm", "ana")]
        )
    done = tidings("notifications", "--as", "ana")
    assert done.stdout == ""
    assert re.fullmatch(r"deferred: 2 notifications, the first until \d{4}-.*Z\n", done.stderr)
    assert tidings("notifications", "--as", "ana", "--json").output == ""


def test_a_long_subscription_is_not_cut_when_there_is_no_terminal(tidings: Tidings) -> None:
    text = " or ".join(f"attribute_{n} = 'value {n}'" for n in range(40))
    tidings("subscribe", "--as", "ana", text)
    assert text in tidings("subscriptions").stdout


def test_unsubscribe_withdraws_what_is_there_and_names_what_is_not(tidings: Tidings) -> None:
    tidings("subscribe", "--as", "ana", "a = 1", "--id", "s1")
    done = tidings("unsubscribe", "s1", "s9")
    assert done.exit_code == 3
    assert done.stdout == "s1  removed\n"
    assert done.stderr == "s9  there is no such subscription\n"
    assert tidings("subscriptions", "--json").stdout == ""


def test_a_text_without_quotes_is_told_to_have_some(tidings: Tidings) -> None:
    pieces = tidings("subscribe", "--as", "ana", "price", "=", "200")
    assert pieces.exit_code == 2
    assert pieces.stderr == (
        "error: the text came in 3 pieces; received price = 200; "
        'quote the whole text: tidings subscribe --as NAME "price > 200"\n'
    )
    redirected = tidings("subscribe", "--as", "ana", "price")  # what the shell leaves of: price > 200
    assert redirected.exit_code == 2
    assert "^   quote the whole text" in redirected.stderr


def test_a_name_without_subscriptions_is_said_to_have_none(tidings: Tidings) -> None:
    assert tidings("subscriptions", "--as", "nobody").stderr == "no subscriptions for nobody\n"
    told = tidings("notifications", "--as", "nobody").stderr
    assert told == "nothing for nobody yet; there are no subscriptions for that name\n"
    tidings("subscribe", "--as", "ana", "a = 1")
    told = tidings("notifications", "--as", "ana").stderr
    assert told == "nothing for ana yet; is `tidings run` or `tidings serve` running?\n"


def test_change_pause_and_resume_keep_the_id(tidings: Tidings) -> None:
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


def test_the_subscriptions_of_a_file_are_made_and_the_bad_ones_listed(furniture: Tidings) -> None:
    lines = [
        {"id": "mine", "text": "price < 200"},
        {"id": "his", "subscriber": "bo", "text": "price < 200"},
        {"text": "prise < 200"},
        {"text": "price < 200", "id": "mine", "within": "1 hour"},
        *({"subscriber": "ana", "text": f"price < {n}"} for n in range(12)),
    ]
    Path("subs.jsonl").write_text("\n".join(map(json.dumps, lines)) + "\n\nno JSON")
    done = furniture("subscribe", "--as", "ana", "--file", "subs.jsonl", "--within", "10 minutes")
    assert (done.exit_code, done.stdout) == (3, "13 subscriptions made, 4 refused\n")
    refused = done.stderr.splitlines()
    assert [line.partition(":")[0] for line in refused] == ["refused"] * 4
    assert refused[0] == (
        "refused: subs.jsonl, line 2: the line is for another subscriber; received bo; accepted: ana; "
        "without --as, each line names its own subscriber"
    )
    assert refused[1].startswith("refused: subs.jsonl, line 3: no event type has an attribute 'prise'")
    assert refused[1].endswith("; did you mean 'price'?")
    assert "line 4: the id 'mine' is already used" in refused[2]
    assert refused[3].startswith("refused: subs.jsonl, line 18: ")
    made = [json.loads(line) for line in furniture("subscriptions", "--json").stdout.splitlines()]
    assert {(one["subscriber"], one["within"]) for one in made} == {("ana", "10 minutes")}
    assert len(made) == 13


def test_the_lines_that_are_listed_are_lines_that_are_taken(tidings: Tidings) -> None:
    """Paused ones come back paused, and count for nothing in `tidings match`, either: one file serves all."""
    assert tidings("subscribe", "--as", "ana", "a = 1", "--within", "1 hour", "--id", "s-1").exit_code == 0
    assert tidings("subscribe", "--as", "bo", "//a", "--language", "xpath", "--id", "s-2").exit_code == 0
    assert tidings("subscribe", "--as", "bo", "a = 2", "--within", "1 hour", "--id", "s-0").exit_code == 0
    assert tidings("pause", "s-0").exit_code == 0
    listed = tidings("subscriptions", "--json").stdout
    assert json.loads(listed.splitlines()[-1])["state"] == "paused"
    again = tidings("subscribe", "--file", "-", given=listed)
    assert (again.exit_code, again.stdout) == (0, "0 subscriptions made, 3 known already\n")
    Path("subs.jsonl").write_text(listed)
    told = tidings("subscribe", "--file", "subs.jsonl", "--home", "other", "--json").stdout.splitlines()
    assert [json.loads(line) for line in told] == [{"id": id, "new": True} for id in ("s-1", "s-2", "s-0")]
    assert tidings("subscriptions", "--json", "--home", "other").stdout == listed
    assert tidings("resume", "s-0", "--home", "other").stdout == "s-0  active\n"
    assert json.loads(tidings("subscriptions", "--as", "bo", "--json", "--home", "other").stdout.splitlines()[-1]) == {
        "id": "s-0", "subscriber": "bo", "language": "predicates", "text": "a = 2", "within": "1 hour"
    }  # fmt: skip


def test_no_file_changes_what_is_there(tidings: Tidings) -> None:
    """Neither is what lives paused by a line, nor the other way round."""
    tidings("subscribe", "--as", "ana", "a = 1", "--id", "awake")
    tidings("subscribe", "--as", "ana", "a = 1", "--id", "asleep")
    tidings("pause", "asleep")
    before = tidings("subscriptions", "--json").stdout
    line = {"subscriber": "ana", "text": "a = 1"}
    lines = [line | {"id": "awake", "state": "paused"}, line | {"id": "asleep", "state": "active"}]
    lines += [line | {"id": "asleep", "text": "a = 2", "state": "paused"}, line | {"state": "pausd"}]
    done = tidings("subscribe", "--file", "-", given="\n".join(map(json.dumps, lines)))
    assert (done.exit_code, done.stdout) == (3, "0 subscriptions made, 4 refused\n")
    said = [line.partition(": ")[2].partition(": ")[2] for line in done.stderr.splitlines()]
    assert said == [
        "the id 'awake' is used for a subscription that is active; pause or remove that one, or leave the id out",
        "the id 'asleep' is used for a subscription that is paused; resume or remove that one, or leave the id out",
        "the id 'asleep' is already used for another subscription; give it an id of its own, leave the id out, or "
        "unsubscribe first",
        "'state' is invalid; received pausd; accepted: 'active' or 'paused'",
    ]
    assert tidings("subscriptions", "--json").stdout == before


def test_a_line_that_names_nobody_is_for_whoever_is_named(tidings: Tidings) -> None:
    line = json.dumps({"text": "//a", "id": "one"})
    refused = tidings("subscribe", "--file", "-", "--json", given=line)
    assert (refused.exit_code, refused.stdout) == (3, "")
    facts = json.loads(refused.stderr)
    assert (facts["where"], facts["what"]) == ("standard input, line 1", "the subscriber is missing")
    done = tidings("subscribe", "--file", "-", "--as", "ana", "--language", "xpath", given=line)
    assert (done.exit_code, done.stdout) == (0, "1 subscription made\n")


@pytest.mark.parametrize(
    ("words", "said"),
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
def test_what_holds_for_all_lines_is_wrong_once(tidings: Tidings, words: tuple[str, ...], said: str) -> None:
    """Before a line is read, whatever lines say for themselves."""
    line = {"subscriber": "ana", "language": "predicates", "text": "a = 1", "within": "1 hour"}
    done = tidings("subscribe", "--file", "-", *words, given=f"{json.dumps(line)}\n" * 3)
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr.startswith(said) and done.stderr.count("\n") == 1
    assert ("; did you mean 'xpath'?\n" in done.stderr) == ("xpaht" in words)
    assert ("name the language gql\n" in done.stderr) == ("sparql" in words)
    assert tidings("subscriptions", "--json").stdout == ""


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("a = 1", "--file", "subs.jsonl"), "TEXT or --file, not both"),
        (("--file", "subs.jsonl", "--id", "x"), "--id is for one subscription"),
        (("--file", "subs.jsonl"), "no file 'subs.jsonl'; accepted: a .jsonl file"),
        ((), "the text of the subscription is missing; accepted: TEXT, or --file FILE"),
    ],
)
def test_either_a_text_or_a_file(tidings: Tidings, words: tuple[str, ...], said: str) -> None:
    done = tidings("subscribe", "--as", "ana", *words)
    assert done.exit_code == 2
    assert done.stderr.startswith(f"error: {said}")


def test_a_text_is_for_somebody(tidings: Tidings) -> None:
    done = tidings("subscribe", "a = 1")
    assert (done.exit_code, done.stderr) == (2, "error: the subscriber is missing; accepted: --as NAME\n")


def test_subscribe_with_an_empty_range_warns_and_is_accepted(tidings: Tidings) -> None:
    done = tidings("subscribe", "--as", "ana", "price > 6 and price < 4", "--id", "none")
    assert (done.exit_code, done.stdout.split()[0]) == (0, "none")
    assert done.stderr.splitlines() == [
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


def test_a_suspended_subscription_shows_its_reason_and_can_be_resumed(tidings: Tidings) -> None:
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
    told = tidings("notifications", "--as", "ana").stdout
    assert "suspended: it exceeded the time or memory budget 3 times" in told
    assert tidings("resume", "s-1").stdout == "s-1  active\n"
    assert "suspended" not in tidings("subscriptions").stdout
