"""Publications that a task cannot finish become dead letters, and others are delivered: with real workers that hang or
die, and with the search alone.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException

from tests.spark.poison import DECODE, EXPLAIN, MATCH, METADATA, poisoned
from tests.support.paths import ROOT
from tests.support.processes import streams
from tests.support.processes.streams import check_gapless, read_notifications, running
from tidings.metadata.log import LogDraft, Operation
from tidings.metadata.spark import metadata_stream
from tidings.model import SUSPENDED, Publication, Subscription
from tidings.spark.sources.position_reader import cut_ranges, read_range
from tidings.spark.stream import batch_processor, journal_task, sink
from tidings.spark.stream.batch_processor import PublicationStream
from tidings.spark.stream.budget import Budget, BudgetWatch, StepMark, StepPhase, read_marks
from tidings.spark.stream.failures import find_exception_name, is_data_failure
from tidings.spark.stream.isolation import Isolation, Span, Verdicts
from tidings.spark.stream.match_output import DEAD_LETTERS, MatchReport
from tidings.spark.stream.match_task import MatchJob, build_match_stage
from tidings.spark.stream.sink import BatchRows
from tidings.store.database import sqlite_url
from tidings.store.dead_letters import DeadLetter
from tidings.store.store import Store, open_store

JSON, XML, TURTLE = "application/json", "application/xml", "text/turtle"
SCHEMA = (ROOT / "examples" / "metadata" / "schema.ttl").read_bytes()
SHORT = Budget(seconds=4.0, megabytes=1_024)
"""Long enough for every valid step on a busy machine."""

EVENT, DOCUMENT = b'{"price": 7}', b"<order><price>7</price></order>"
GRAPH = b"<urn:a> <urn:p> <urn:b> ."
_CYCLE = " ".join(f"(?{a}, <urn:p>, ?{b})" for a, b in zip("abcdefg", "bcdefga", strict=True))
ODD = f"SELECT * WHERE {_CYCLE}"
BIPARTITE = "".join(
    f"<urn:a{n}> <urn:p> <urn:b{m}> . <urn:b{m}> <urn:p> <urn:a{n}> .\n" for n in range(40) for m in range(40)
).encode()
"""A bipartite graph has no cycle of odd length, but the search cannot prove it in time."""

BODIES = [(JSON, EVENT), (XML, DOCUMENT), (TURTLE, GRAPH)]


@pytest.fixture(autouse=True)
def long_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait longer, because workers die and restart many times."""
    monkeypatch.setattr(streams, "PATIENCE", 280.0)


def publications(count: int) -> list[Publication]:
    return [Publication(f"p{n}", *BODIES[n % len(BODIES)]) for n in range(count)]


def read_dead_letters(store: Store) -> list[tuple[str, str | None, str]]:
    return [(letter.publication, letter.subscription, letter.reason) for letter in store.dead_letters.read()]


@pytest.mark.spark
def test_stream_hanging_or_dying_explanations_are_dead_letters_and_others_delivered(
    session: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A graph whose explanation hangs in compiled code, and a document whose explanation kills the worker."""
    poisoned(monkeypatch, journal_task, "_build_stage", EXPLAIN)
    url = sqlite_url(tmp_path / "store.db")
    with open_store(url) as store:
        good = [
            ("predicates", "price = 7"),
            ("xpath", "/order/price"),
            ("gql", "SELECT ?o WHERE (?s, ?p, ?o)"),
        ]
        for number, (language, text) in enumerate(good):
            store.subscriptions.add(Subscription(f"good{number}", "ana", language, text))
        store.subscriptions.add(Subscription("slow", "bo", "gql", "SELECT ?hang WHERE (?hang, <urn:q>, ?o)"))
        store.subscriptions.add(Subscription("deadly", "bo", "xpath", "/order[die]"))
        store.journal.append(
            [
                *publications(6),
                Publication("hangs", TURTLE, b"<urn:a> <urn:p> <urn:b>; <urn:q> <urn:c> ."),
                Publication("dies", XML, b"<order><die/><price>7</price></order>"),
                Publication("last", JSON, EVENT),
            ]
        )
        with running(session, tmp_path, url, budget=SHORT) as stream:
            stream.until(lambda: len(read_notifications(store, "ana")["ana"]) == 9)
        check_gapless(store, "ana", "bo")
        publication_ids = [f"p{n}" for n in range(6)] + ["hangs", "dies", "last"]
        assert [row[1] for row in read_notifications(store, "ana")["ana"]] == publication_ids
        assert read_notifications(store, "bo")["bo"] == []
        assert read_dead_letters(store) == [
            ("hangs", "slow", "explaining the match takes longer than its budget; accepted: 4 seconds"),
            (
                "dies",
                "deadly",
                "explaining the match kills the worker, as too much memory does; accepted: 1,024 megabytes",
            ),
        ]
        (hangs, dies) = store.dead_letters.read()
        assert (hangs.position, hangs.source) == (7, "journal") and hangs.body and dies.body
        assert hangs.facts["hint"] == "raise the setting stream.step_seconds to give it more time"
        assert (store.overruns.count("slow"), store.overruns.count("deadly")) == (1, 1)


@pytest.mark.long
@pytest.mark.spark
def test_stream_publications_hanging_in_decoding_or_matching_are_dead_letters(
    session: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The dead letter of a match names the subscription, which the search finds."""
    poisoned(monkeypatch, journal_task, "_build_stage", DECODE, MATCH)
    url = sqlite_url(tmp_path / "store.db")
    with open_store(url) as store:
        subscriptions = [Subscription(f"s{n}", "ana", "predicates", "price = 7") for n in range(7)]
        store.subscriptions.add_many([*subscriptions, Subscription("hangs", "bo", "predicates", "price = 8")])
        store.journal.append([Publication("p0", JSON, EVENT)])
        with running(session, tmp_path, url, budget=SHORT) as stream:
            stream.until(lambda: len(read_notifications(store, "ana")["ana"]) == 7)
            store.subscriptions.remove(["hangs"])
            bad = [
                Publication(f"{what}s", JSON, b'{"x": "%s"}' % what.encode()) for what in ("hang", "allocate")
            ]
            store.journal.append([*bad, Publication("p1", JSON, EVENT)])
            stream.until(lambda: len(read_notifications(store, "ana")["ana"]) == 14)
        check_gapless(store, "ana")
        assert read_dead_letters(store) == [
            ("p0", "hangs", "matching the publication takes longer than its budget; accepted: 4 seconds"),
            ("hangs", None, "decoding the publication takes longer than its budget; accepted: 4 seconds"),
            (
                "allocates",
                None,
                "decoding the publication takes more memory than its budget; accepted: 1,024 megabytes",
            ),
        ]


@pytest.mark.long
@pytest.mark.spark
def test_stream_of_folder_hanging_publications_are_dead_letters(
    session: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    poisoned(monkeypatch, batch_processor, "build_match_stage", DECODE)
    url, folder = sqlite_url(tmp_path / "store.db"), tmp_path / "in"
    folder.mkdir()
    lines = [f'{{"id": "p{n}", "price": 7}}' for n in range(4)]
    (folder / "a.jsonl").write_text("\n".join([*lines[:2], '{"id": "bad", "x": "hang"}', *lines[2:], ""]))
    with open_store(url) as store:
        store.subscriptions.add(Subscription("s", "ana", "predicates", "price = 7"))
        with running(session, tmp_path / "home", url, folder=folder, budget=SHORT) as stream:
            stream.until(lambda: len(read_notifications(store, "ana")["ana"]) == 4)
        assert [row[1] for row in read_notifications(store, "ana")["ana"]] == [f"p{n}" for n in range(4)]
        assert read_dead_letters(store) == [
            ("a.jsonl:3", None, "decoding the publication takes longer than its budget; accepted: 4 seconds")
        ]


@pytest.mark.long
@pytest.mark.spark
def test_metadata_stream_hanging_document_is_dead_letter_and_others_registered(
    session: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first schema is in the same batch as the documents."""
    poisoned(monkeypatch, metadata_stream, "build_metadata_stage", METADATA)
    url = sqlite_url(tmp_path / "store.db")
    bodies = [
        b"<#s> a <http://example.org/servers#ServerInformation> . # %s" % what for what in (b"", b"hang", b"")
    ]
    drafts = [
        LogDraft(Operation.REGISTER, f"http://example.org/{n}.rdf", TURTLE, body)
        for n, body in enumerate(bodies)
    ]
    with open_store(url) as store:
        store.metadata.log.append([LogDraft(Operation.SCHEMA, "", TURTLE, SCHEMA), *drafts])
        with running(session, tmp_path, url, budget=SHORT) as stream:
            stream.until(lambda: store.metadata.position() == 4)
        assert read_dead_letters(store) == [
            (
                "http://example.org/1.rdf",
                None,
                "decoding the publication takes longer than its budget; accepted: 4 seconds; "
                "raise the setting stream.step_seconds to give it more time",
            )
        ]
        uris = {
            each.uri
            for start, end in store.metadata.resource_ranges(10)
            for each in store.metadata.resources_between(start, end)
        }
        assert uris == {"http://example.org/0.rdf#s", "http://example.org/2.rdf#s"}


@pytest.mark.spark
def test_stream_publication_beyond_memory_budget_is_dead_letter(session: Any, tmp_path: Path) -> None:
    """A document of many nodes, and a budget that is too small to explain it."""
    url = sqlite_url(tmp_path / "store.db")
    large = b"<order>" + b"<item><price>7</price></item>" * 80_000 + b"</order>"
    with open_store(url) as store:
        store.subscriptions.add(Subscription("s", "ana", "xpath", "//price"))
        store.journal.append(
            [*publications(2), Publication("large", XML, large), Publication("p2", *BODIES[1])]
        )
        with running(session, tmp_path, url, budget=Budget(30.0, 48)) as stream:
            stream.until(lambda: len(read_notifications(store, "ana")["ana"]) == 2)
        assert [row[1] for row in read_notifications(store, "ana")["ana"]] == ["p1", "p2"]
        [(publication, _, reason)] = read_dead_letters(store)
        assert publication == "large" and reason.startswith(
            "explaining the match takes more memory than its budget"
        )
        assert reason.endswith("accepted: 48 megabytes")


@pytest.mark.spark
def test_stream_subscription_with_many_bindings_is_explained_within_bounds(
    session: Any, tmp_path: Path
) -> None:
    """32 edges without common variables and a complete bipartite graph: the search for bindings is bounded."""
    url = sqlite_url(tmp_path / "store.db")
    edges = " ".join(f"(?a{n}, <urn:p>, ?b{n})" for n in range(32))
    bipartite = "".join(f"<urn:a{n // 40}> <urn:p> <urn:b{n % 40}> .\n" for n in range(1_600))
    with open_store(url) as store:
        store.subscriptions.add(Subscription("apart", "ana", "gql", f"SELECT * WHERE {edges}"))
        store.journal.append([Publication("bipartite", TURTLE, bipartite.encode()), *publications(3)])
        with running(session, tmp_path, url, budget=SHORT) as stream:
            stream.until(lambda: len(read_notifications(store, "ana")["ana"]) == 2)
        notifications = store.notifications.read("ana")
        assert [notification.publication for notification in notifications] == ["bipartite", "p2"]
        assert notifications[0].bindings["note"] == "more than 100 bindings"
        assert len(notifications[0].bindings["results"]["bindings"]) == 100
        assert read_dead_letters(store) == []


@pytest.mark.spark
def test_stream_repeatedly_undecided_subscription_is_suspended(session: Any, tmp_path: Path) -> None:
    """A pattern of odd cycles in a bipartite graph is not decided within the step limit. Others are delivered."""
    url = sqlite_url(tmp_path / "store.db")
    with open_store(url) as store:
        store.subscriptions.add(Subscription("odd", "bo", "gql", ODD))
        store.subscriptions.add(Subscription("any", "ana", "gql", "SELECT ?s WHERE (?s, <urn:p>, <urn:b0>)"))
        store.journal.append([Publication(f"g{n}", TURTLE, BIPARTITE) for n in range(3)])
        with running(session, tmp_path, url) as stream:
            stream.until(lambda: read_notifications(store, "bo")["bo"])
            store.journal.append([Publication("g3", TURTLE, BIPARTITE)])
            stream.until(lambda: len(read_notifications(store, "ana")["ana"]) == 4)
        assert [letter[:2] for letter in read_dead_letters(store)] == [(f"g{n}", "odd") for n in range(3)]
        assert all("could not be decided" in reason for _, _, reason in read_dead_letters(store))
        (suspended,) = store.notifications.read("bo")
        assert (suspended.kind, suspended.subscription) == (SUSPENDED, "odd")
        stored = store.subscription_view.find("odd")
        assert stored is not None and stored.paused and stored.reason
        assert [row[1] for row in read_notifications(store, "ana")["ana"]] == ["g0", "g1", "g2", "g3"]


def test_search_by_subscriptions_keeps_dead_letters_of_pairs(tmp_path: Path) -> None:
    """The tasks run in this process. The undecided pair is in one of the parts; a publication that cannot be decoded is
    a dead letter once, not in each part.
    """
    url = sqlite_url(tmp_path / "store.db")
    with open_store(url) as store:
        store.subscriptions.add(Subscription("odd", "bo", "gql", ODD))
        store.subscriptions.add(Subscription("any", "ana", "gql", "SELECT ?s WHERE (?s, <urn:p>, <urn:b0>)"))
        store.journal.append([Publication("g", TURTLE, BIPARTITE), Publication("broken", TURTLE, b"<")])
    live = PublicationStream(tmp_path, url).open()
    try:
        live._run = lambda rows, job, span: run_tasks_locally(url, job, span)  # type: ignore[method-assign]
        live._index.refresh()
        results = []
        for number, some in enumerate([["odd"], ["any"], []]):
            folder = tmp_path / str(number)
            folder.mkdir()
            (report,) = live._search(None, Span(0, 2), Verdicts(), folder, some)  # type: ignore[arg-type]
            undecided = [letter.publication for letter in letters_of_report(report)]
            results.append((report.events, report.found, undecided))
        assert results == [(0, 0, ["g"]), (0, 1, []), (2, 0, ["broken"])]
    finally:
        live.close()


def run_tasks_locally(url: str, job: MatchJob, span: Span) -> list[MatchReport]:
    reports = [
        batch.to_pylist()[0]["report"]
        for part in cut_ranges(span.after, span.upto)
        for batch in build_match_stage(job)(read_range(url, part))
    ]
    return [MatchReport(**json.loads(report)) for report in reports]


def letters_of_report(report: MatchReport) -> list[DeadLetter]:
    return list(
        BatchRows([f"{report.output}-{DEAD_LETTERS}"] if report.dead else [], sink._build_dead_letter)
    )


# The search alone: attempts that fail as in Spark, without Spark.

DIED = PySparkException("Job aborted: Python worker exited unexpectedly (crashed)")
Marks = Callable[[Span], Sequence[StepMark]]


class Batch:
    """A batch of publications, some of which fail. With `leaves_marks`, it leaves marks as workers do."""

    def __init__(
        self,
        folder: Path,
        bad: Sequence[int] = (),
        pairs: Sequence[tuple[int, str]] = (),
        leaves_marks: bool = True,
    ) -> None:
        self.attempts, self.controls, self._leaves_marks = 0, 0, leaves_marks
        self._bad, self._pairs = set(bad), list(pairs)
        self.isolation = Isolation[int](self.attempt, self.control, folder, Budget())

    def attempt(self, span: Span, verdicts: Verdicts, folder: Path) -> list[int]:
        self.attempts += 1
        for position in range(span.after + 1, span.upto + 1):
            if position in verdicts.publications:
                continue
            if position in self._bad:
                self._fail(folder, StepPhase.DECODE, position)
            for at, subscription in self._pairs:
                if at == position and subscription not in verdicts.pairs.get(position, {}):
                    self._fail(folder, StepPhase.EXPLAIN, position, subscription)
        return list(range(span.after + 1, span.upto + 1))

    def _fail(self, folder: Path, phase: StepPhase, position: int, subscription: str = "") -> None:
        watch = BudgetWatch(Budget(seconds=0), folder)
        try:
            with watch:
                if self._leaves_marks:
                    watch.step(phase, position, position, subscription)
                raise DIED
        except PySparkException:
            raise DIED from None

    def control(self) -> None:
        self.controls += 1


def test_isolation_batch_without_poison_takes_one_attempt(tmp_path: Path) -> None:
    batch = Batch(tmp_path)
    assert (batch.isolation.run(3, 9), batch.attempts, batch.controls) == ([4, 5, 6, 7, 8, 9], 1, 0)


@pytest.mark.parametrize("leaves_marks", [True, False])
def test_isolation_finds_all_failing_publications(tmp_path: Path, leaves_marks: bool) -> None:
    batch = Batch(tmp_path, bad=[1, 500, 501, 1_000], leaves_marks=leaves_marks)
    assert batch.isolation.run(0, 1_000) == list(range(1, 1_001)), "in order, each once"
    assert sorted(batch.isolation.verdicts.publications) == [1, 500, 501, 1_000]
    most = 4 * 6 if leaves_marks else 4 * 2 * 12
    assert batch.attempts < most, "a few attempts for each with marks, logarithmically many without"


def test_isolation_of_failing_pairs_names_publication_and_subscription(tmp_path: Path) -> None:
    batch = Batch(tmp_path, pairs=[(7, "s-1"), (7, "s-2"), (9, "s-1")])
    assert batch.isolation.run(0, 20) == list(range(1, 21))
    subscriptions_by_position = {at: sorted(pairs) for at, pairs in batch.isolation.verdicts.pairs.items()}
    assert (
        subscriptions_by_position == {7: ["s-1", "s-2"], 9: ["s-1"]}
        and not batch.isolation.verdicts.publications
    )


def test_isolation_too_many_failing_pairs_rejects_publication(tmp_path: Path) -> None:
    batch = Batch(tmp_path, pairs=[(2, f"s-{n}") for n in range(20)])
    assert batch.isolation.run(0, 3) == [1, 2, 3]
    assert list(batch.isolation.verdicts.publications) == [2]


def test_isolation_with_failing_control_raises_failure(tmp_path: Path) -> None:
    batch = Batch(tmp_path, bad=[2])

    def control() -> None:
        raise DIED

    batch.isolation.control = control
    with pytest.raises(PySparkException, match="exited unexpectedly"):
        batch.isolation.run(0, 3)
    assert not batch.isolation.verdicts.publications


def test_isolation_failure_not_caused_by_data_is_raised(tmp_path: Path) -> None:
    unavailable = PySparkException(
        "Traceback (most recent call last):\n  File x\ntidings.errors.StoreError: away"
    )

    def attempt(span: Span, verdicts: Verdicts, folder: Path) -> list[int]:
        raise unavailable

    isolation = Isolation[int](attempt, lambda: None, tmp_path, Budget())
    with pytest.raises(PySparkException, match="StoreError"):
        isolation.run(0, 3)


def test_isolation_publication_failing_at_other_match_each_time_ends(tmp_path: Path) -> None:
    """A worker without memory dies at a different match in each attempt."""
    batch = Batch(tmp_path)

    def attempt(span: Span, verdicts: Verdicts, folder: Path) -> list[int]:
        batch.attempts += 1
        if span.after < 2 <= span.upto and 2 not in verdicts.publications:
            batch._fail(folder, StepPhase.EXPLAIN, 2, f"s-{batch.attempts}")
        return list(range(span.after + 1, span.upto + 1))

    batch.isolation.attempt = attempt
    assert batch.isolation.run(0, 3) == [1, 2, 3]
    assert list(batch.isolation.verdicts.publications) == [2]
    assert batch.attempts < 40


@pytest.mark.parametrize("upto", [1, 9])
@pytest.mark.parametrize("phase", [StepPhase.NOTHING, StepPhase.DECODE, StepPhase.MATCH, StepPhase.EXPLAIN])
def test_isolation_worker_killed_once_rejects_no_publication(
    tmp_path: Path, upto: int, phase: StepPhase
) -> None:
    batch = Batch(tmp_path, leaves_marks=phase is not StepPhase.NOTHING)
    original_attempt = batch.isolation.attempt

    def attempt(span: Span, verdicts: Verdicts, folder: Path) -> list[int]:
        if not batch.attempts:
            batch.attempts += 1
            batch._fail(folder, phase, 1, "s-1" if phase is StepPhase.EXPLAIN else "")
        return original_attempt(span, verdicts, folder)

    batch.isolation.attempt = attempt
    assert batch.isolation.run(0, upto) == list(range(1, upto + 1))
    assert batch.isolation.verdicts == Verdicts()


def test_isolation_by_subscriptions_rejects_no_pair_that_failed_once(tmp_path: Path) -> None:
    """A worker may be killed from outside while one subscription is left, which proves nothing about it."""
    batch = Batch(tmp_path)
    killed: list[str] = []

    def attempt(span: Span, verdicts: Verdicts, folder: Path) -> list[int]:
        if span.after < 2 <= span.upto and 2 not in verdicts.publications:
            batch._fail(folder, StepPhase.MATCH, 2)
        return list(range(span.after + 1, span.upto + 1))

    def search(span: Span, verdicts: Verdicts, folder: Path, subscriptions: Sequence[str]) -> list[int]:
        if "bad" in subscriptions:
            batch._fail(folder, StepPhase.MATCH, 2)
        if subscriptions == ["good"] and not killed:
            killed.append("good")
            batch._fail(folder, StepPhase.MATCH, 2)
        return [2] if subscriptions else []

    isolation = batch.isolation
    isolation.attempt, isolation.search = attempt, search
    isolation.subscriptions = lambda: ["good", "bad"]
    assert isolation.run(0, 3) == [1, 2, 3] and killed
    assert {at: list(pairs) for at, pairs in isolation.verdicts.pairs.items()} == {2: ["bad"]}


@pytest.mark.parametrize(
    ("message", "raised", "is_data"),
    [
        ("Python worker exited unexpectedly (crashed)", None, True),
        ("x\nTraceback (most recent call last):\n  File a\n    b\nMemoryError", "MemoryError", True),
        (
            "x\nTraceback (most recent call last):\n  File a\ntidings.errors.DecodeProblem: b",
            "tidings.errors.DecodeProblem",
            True,
        ),
        (
            "x\nTraceback (most recent call last):\n  File a\nOSError: [Errno 12] Cannot allocate memory",
            "OSError",
            True,
        ),
        ("x\nTraceback (most recent call last):\n  File a\nKeyError: 'x'\n\n\tat java", "KeyError", True),
        ("x\nTraceback (most recent call last):\n  File a\nFileNotFoundError: x", "FileNotFoundError", False),
        (
            "Traceback (most recent call last):\n  File a\ntidings.errors.SetupError: x",
            "tidings.errors.SetupError",
            False,
        ),
        (
            "x\nTraceback (most recent call last):\n  File a\nValueError: 'No space left on device'",
            "ValueError",
            True,
        ),
        (
            "x\nTraceback (most recent call last):\n  File a\nOSError: [Errno 28] No space left on device",
            "OSError",
            False,
        ),
        ("Python worker failed to connect back.", None, False),
        ("Python worker exited unexpectedly: No space left on device", None, False),
        ("Job 3 cancelled because SparkContext was shut down", None, False),
    ],
)
def test_is_data_failure_depends_on_exception(message: str, raised: str | None, is_data: bool) -> None:
    assert (find_exception_name(message), is_data_failure(PySparkException(message))) == (raised, is_data)


def test_budget_watch_successful_task_leaves_no_mark(tmp_path: Path) -> None:
    with BudgetWatch(Budget(), tmp_path) as watch:
        watch.step(StepPhase.EXPLAIN, 3, 3, "s-1")
        assert list(read_marks(tmp_path)) == [StepMark(StepPhase.EXPLAIN, 3, 3, "s-1")]
    assert list(read_marks(tmp_path)) == []


def test_budget_watch_beyond_memory_budget_raises(tmp_path: Path) -> None:
    with pytest.raises(MemoryError), BudgetWatch(Budget(30.0, 64), tmp_path) as watch:
        watch.step(StepPhase.DECODE, 1, 5)
        assert len(bytearray(32 << 20))
        bytearray(256 << 20)
    assert list(read_marks(tmp_path)) == [StepMark(StepPhase.DECODE, 1, 5)]
    assert len(bytearray(256 << 20)), "the limit ends with the task"
