"""Isolation of poison: what no worker can finish becomes dead letters, the rest is delivered.

    attempt(span)  ──fails because of the data──▶  control, which must pass
        │                                              │
        │◀── the spans around the step that was running, or else halves ──
        ▼
    one publication, failed twice  ──▶  a verdict on the publication, or on the pair with the subscription that was
                                        being explained; then another attempt, until one passes

A worker that dies leaves a mark of its current step (`budget`). With the mark the culprit is found in three attempts,
instead of one attempt per halving. Compiled code matches many subscriptions at once, so there the mark names none: the
subscription is searched for by matching with halves of the subscriptions.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar
from uuid import uuid4

from tidings.errors import BudgetExceeded
from tidings.spark.stream.budget import Budget, StepMark, StepPhase, read_marks
from tidings.spark.stream.failures import (
    find_exception_name,
    is_data_failure,
    is_slow_start,
    ran_out_of_memory,
)

# Verdicts on publications that a task cannot finish, for the tasks that process the rest.


@dataclass(frozen=True, slots=True)
class Verdicts:
    """Reasons why publications, by position, and pairs with subscriptions are dead letters.

    Tasks skip these and write the dead letters, since they have the bodies. Subscriptions in `suspended` have so many
    such pairs that they are suspended with this batch: no more matches are explained for them.
    """

    publications: Mapping[int, BudgetExceeded] = field(default_factory=dict)
    pairs: Mapping[int, Mapping[str, BudgetExceeded]] = field(default_factory=dict)
    suspended: frozenset[str] = frozenset()

    def refuse(self, position: int, problem: BudgetExceeded) -> Verdicts:
        """Return these verdicts and one on a whole publication."""
        return replace(self, publications={**self.publications, position: problem})

    def refuse_pair(self, position: int, subscription: str, problem: BudgetExceeded) -> Verdicts:
        """Return these verdicts and one on a publication with one subscription."""
        pairs = {**self.pairs.get(position, {}), subscription: problem}
        return replace(self, pairs={**self.pairs, position: pairs})

    def suspend(self, subscription: str, limit: int) -> Verdicts:
        """Return these verdicts with a subscription suspended if it has at least `limit` pairs."""
        if sum(subscription in pairs for pairs in self.pairs.values()) < limit:
            return self
        return replace(self, suspended=self.suspended | {subscription})


NO_VERDICTS = Verdicts()


MOST_PAIRS = 8
"""The number of pairs of one publication to search for; with more, the whole publication is refused."""

MOST_SEARCHED = 100_000
"""The number of subscriptions up to which one that fails in compiled code is searched for."""

TWICE = 2
"""The number of failures, the last one alone, after which the data is at fault."""

MOST_FAILURES = 4 * MOST_PAIRS
"""The number of failures alone, in any step, after which a whole publication is refused."""

STARTS = 3
"""The number of attempts if a Python process does not start in time."""

R = TypeVar("R")
_log = logging.getLogger("tidings.stream")


@dataclass(frozen=True, slots=True)
class Span:
    """The positions after `after`, up to and including `upto`; if `is_careful`, one per step."""

    after: int
    upto: int
    is_careful: bool = False

    @property
    def is_one(self) -> bool:
        return self.upto - self.after == 1

    def around(self, first: int, last: int) -> list[Span]:
        """Divide this span into the parts before, at and after the given positions."""
        first, last = max(first, self.after + 1), min(last, self.upto)
        parts = [Span(self.after, first - 1), Span(first - 1, last, True), Span(last, self.upto)]
        return [part for part in parts if part.after < part.upto]

    def halves(self) -> list[Span]:
        middle = (self.after + self.upto) // 2
        return [Span(self.after, middle, self.is_careful), Span(middle, self.upto, self.is_careful)]


class Attempt(Protocol[R]):
    """Runs a span on Spark; the tasks write their results to a new folder."""

    def __call__(self, span: Span, verdicts: Verdicts, folder: Path) -> list[R]: ...


class Search(Protocol[R]):
    """Runs one publication with some of the subscriptions on Spark."""

    def __call__(
        self, span: Span, verdicts: Verdicts, folder: Path, subscriptions: Sequence[str]
    ) -> list[R]: ...


@dataclass(slots=True)
class Isolation(Generic[R]):
    """Runs a batch and isolates what fails it.

    `control` runs samples: if they fail, too, the data is not at fault. `search` and `subscriptions` serve to find the
    subscription with which a publication fails in compiled code.
    """

    attempt: Attempt[R]
    control: Callable[[], object]
    folder: Path
    budget: Budget
    search: Search[R] | None = None
    subscriptions: Callable[[], Sequence[str]] = tuple
    suspend_after: int = 3
    verdicts: Verdicts = field(default_factory=Verdicts)
    _failed: Counter[tuple[int, str]] = field(default_factory=Counter)
    _alone: Counter[int] = field(default_factory=Counter)
    _is_checked: bool = False

    def run(self, after: int, upto: int) -> list[R]:
        """Return the reports of the tasks for a span, processed at once or else in parts."""
        done: list[R] = []
        waiting = [Span(after, upto)] if after < upto else []
        while waiting:
            span = waiting.pop()
            reports, failure = self._try(partial(self.attempt, span, self.verdicts))
            if failure is None:
                done += reports
                continue
            cause = str(failure.problem).partition("\n")[0]
            _log.warning("publications %d to %d fail: %s", span.after + 1, span.upto, cause)
            if not span.is_one:
                self._check(failure.problem)
                self._count_timeouts(failure.marks)
                waiting += reversed(_divide(span, failure.marks))
            elif (judged := self._judge(span, failure)) is None:
                waiting.append(span)
            else:
                done += judged
        return done

    def _check(self, problem: BaseException) -> None:
        """Raise the problem if samples fail, too; checked once between two verdicts."""
        if not self._is_checked:
            _, failure = self._try(lambda _: [self.control()])
            if failure is not None:
                raise problem
        self._is_checked = True

    def _count_timeouts(self, marks: Sequence[StepMark]) -> None:
        """Count pairs that ended at their deadline; other marked pairs may just have been running."""
        for mark in marks:
            if mark.timed_out and mark.subscription:
                self._failed[mark.first, mark.subscription] += 1

    def _judge(self, span: Span, failure: _Failure) -> list[R] | None:
        """Find what fails in one publication; return None if it has to be attempted again.

        A pair that timed out in a larger span has already failed once.
        """
        mark = next(iter(failure.marks), StepMark(StepPhase.NOTHING, span.upto, span.upto))
        key = span.upto, mark.subscription
        self._failed[key] += 1
        self._alone[span.upto] += 1
        is_hopeless = self._alone[span.upto] > MOST_FAILURES
        if self._failed[key] < TWICE and not is_hopeless:
            return None
        if span.upto in self.verdicts.publications:  # tasks skip it: the cause is something else
            raise failure.problem
        self._check(failure.problem)
        self._is_checked = False
        if mark.phase is StepPhase.MATCH and self.search is not None and not is_hopeless:
            return self._search_subscriptions(span, failure, mark)
        pairs = self.verdicts.pairs.get(span.upto, ())
        problem = _explain(mark, failure.problem, self.budget)
        if mark.subscription and len(pairs) < MOST_PAIRS and not is_hopeless:
            self._refuse_pair(span.upto, mark.subscription, problem)
        else:
            self.verdicts = self.verdicts.refuse(span.upto, problem)
        return None

    def _search_subscriptions(self, span: Span, failure: _Failure, mark: StepMark) -> list[R] | None:
        """Match one publication with halves of the subscriptions, to exclude only failing ones."""
        search = self.search
        assert search is not None
        problem, subscriptions = _explain(mark, failure.problem, self.budget), list(self.subscriptions())
        if len(subscriptions) > MOST_SEARCHED:
            self.verdicts = self.verdicts.refuse(span.upto, problem)
            return None
        done: list[R] = []
        waiting, refused = [subscriptions], 0
        failed_once: set[str] = set()
        while waiting:
            group = waiting.pop()
            reports, failed = self._try(partial(search, span, self.verdicts, subscriptions=group))
            if failed is None:
                done += reports
            elif len(group) > 1:
                waiting += [group[len(group) // 2 :], group[: len(group) // 2]]
            elif group and group[0] not in failed_once:
                failed_once.add(group[0])
                waiting.append(group)
            elif group and refused < MOST_PAIRS:
                refused += 1
                self._refuse_pair(span.upto, group[0], problem)
            else:
                self.verdicts = self.verdicts.refuse(span.upto, problem)
                return None
        letters, failed = self._try(partial(search, span, self.verdicts, subscriptions=()))
        if failed is None:
            return [*letters, *done]
        self.verdicts = self.verdicts.refuse(span.upto, problem)
        return None

    def _refuse_pair(self, position: int, subscription: str, problem: BudgetExceeded) -> None:
        verdicts = self.verdicts.refuse_pair(position, subscription, problem)
        self.verdicts = verdicts.suspend(subscription, self.suspend_after)

    def _try(self, do: Callable[[Path], list[Any]]) -> tuple[list[Any], _Failure | None]:
        """Return the reports of an attempt, or its failure; raise what the data did not cause."""
        for starts_left in reversed(range(STARTS)):
            folder = self.folder / uuid4().hex[:8]
            folder.mkdir(parents=True)
            try:
                return do(folder), None
            except Exception as problem:
                if is_slow_start(problem) and starts_left:
                    _log.warning("a Python process of Spark did not start in time; trying again")
                    continue
                if not is_data_failure(problem):
                    raise
                return [], _Failure(problem, list(read_marks(folder)))
        raise AssertionError("the last start is returned or raised")


@dataclass(frozen=True, slots=True)
class _Failure:
    """Why an attempt failed, and the steps that were running."""

    problem: BaseException
    marks: Sequence[StepMark]


def _divide(span: Span, marks: Sequence[StepMark]) -> list[Span]:
    """Divide a span around the steps that were running, or in halves if that leaves it as it is."""
    parts = [span]
    for mark in sorted(marks, key=lambda mark: mark.first):
        if mark.first <= parts[-1].upto:
            parts[-1:] = parts[-1].around(mark.first, mark.last)
    is_smaller = len(parts) > 1 or (parts[0].is_careful and not span.is_careful)
    return parts if is_smaller else span.halves()


_ACTIONS = {
    StepPhase.NOTHING: "processing the publication",
    StepPhase.DECODE: "decoding the publication",
    StepPhase.MATCH: "matching the publication",
    StepPhase.EXPLAIN: "explaining the match",
}


def _explain(mark: StepMark, problem: BaseException, budget: Budget) -> BudgetExceeded:
    """Build the problem for the dead letter: action, outcome, budget, and how to raise it."""
    action, raised = _ACTIONS[mark.phase], find_exception_name(str(problem))
    if mark.timed_out:
        return BudgetExceeded(
            f"{action} takes longer than its budget",
            accepted=f"{budget.seconds:g} seconds",
            hint="raise the setting stream.step_seconds to give it more time",
        )
    if raised is None or ran_out_of_memory(str(problem)):
        outcome = (
            "takes more memory than its budget" if raised else "kills the worker, as too much memory does"
        )
        return BudgetExceeded(
            f"{action} {outcome}",
            accepted=f"{budget.megabytes:,} megabytes",
            hint="raise the setting stream.step_memory to give it more memory",
        )
    return BudgetExceeded(f"{action} fails", received=_last_line(problem))


def _last_line(problem: BaseException) -> str:
    lines = [line.strip() for line in str(problem).splitlines() if not line.startswith((" ", "\t"))]
    return next((line for line in reversed(lines) if line), type(problem).__name__)[:200]
