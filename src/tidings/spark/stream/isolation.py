"""Finding what fails a batch: publications that a worker cannot finish become dead letters, the others are delivered.

    attempt(span)  ──fails because of the data──▶  control, which has to pass
        │                                              │
        │◀── the spans around the step that was under way, or else halves ──
        ▼
    one publication, failed twice  ──▶  a verdict: the publication, or the pair with the subscription that was
                                        being explained; and once more, until it passes

A worker that dies leaves a mark of the step it was in (`budget`): with it the culprit is found in three attempts, not
in one for each halving. Where a subscription cannot be read from the mark, because compiled code matches many at once,
it is searched for by matching with halves of the subscriptions.
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

# What was found out about publications that a task cannot finish, for the tasks that do the rest.


@dataclass(frozen=True, slots=True)
class Verdicts:
    """Why publications, by position, and pairs of them with subscriptions are dead letters.

    Tasks do not touch these, and put them among their dead letters, since they have the bodies. Subscriptions in
    `suspended` have so many pairs that they are suspended with this batch: nothing more is explained for them.
    """

    publications: Mapping[int, BudgetExceeded] = field(default_factory=dict)
    pairs: Mapping[int, Mapping[str, BudgetExceeded]] = field(default_factory=dict)
    suspended: frozenset[str] = frozenset()

    def refuse(self, position: int, problem: BudgetExceeded) -> Verdicts:
        """The same, and a publication as a whole."""
        return replace(self, publications={**self.publications, position: problem})

    def refuse_pair(self, position: int, subscription: str, problem: BudgetExceeded) -> Verdicts:
        """The same, and a publication with one subscription."""
        pairs = {**self.pairs.get(position, {}), subscription: problem}
        return replace(self, pairs={**self.pairs, position: pairs})

    def suspend(self, subscription: str, most: int) -> Verdicts:
        """The same, without a subscription that has so many pairs."""
        if sum(subscription in pairs for pairs in self.pairs.values()) < most:
            return self
        return replace(self, suspended=self.suspended | {subscription})


NO_VERDICTS = Verdicts()


MOST_PAIRS = 8
"""How many pairs of one publication are searched for; if there are more, the publication as a whole is refused."""

MOST_SEARCHED = 100_000
"""Among how many subscriptions one is searched for that fails compiled code."""

TWICE = 2
"""How often a step has to fail until it is the data's fault, the last time alone."""

MOST_FAILURES = 4 * MOST_PAIRS
"""How often a publication may fail by itself, wherever it does, until it is refused as a whole."""

STARTS = 3
"""How often an attempt is made whose Python process does not start in time."""

R = TypeVar("R")
_log = logging.getLogger("tidings.stream")


@dataclass(frozen=True, slots=True)
class Span:
    """Positions after `after`, up to and with `upto`; `is_careful` if each is a step for itself."""

    after: int
    upto: int
    is_careful: bool = False

    @property
    def is_one(self) -> bool:
        return self.upto - self.after == 1

    def around(self, first: int, last: int) -> list[Span]:
        """This span in parts: what is before some positions, those, and what is after them."""
        first, last = max(first, self.after + 1), min(last, self.upto)
        parts = [Span(self.after, first - 1), Span(first - 1, last, True), Span(last, self.upto)]
        return [part for part in parts if part.after < part.upto]

    def halves(self) -> list[Span]:
        middle = (self.after + self.upto) // 2
        return [Span(self.after, middle, self.is_careful), Span(middle, self.upto, self.is_careful)]


class Attempt(Protocol[R]):
    """Has Spark do a span, and leave what the tasks write in a new folder."""

    def __call__(self, span: Span, verdicts: Verdicts, folder: Path) -> list[R]: ...


class Search(Protocol[R]):
    """Has Spark do one publication with some subscriptions only."""

    def __call__(
        self, span: Span, verdicts: Verdicts, folder: Path, subscriptions: Sequence[str]
    ) -> list[R]: ...


@dataclass(slots=True)
class Isolation(Generic[R]):
    """Does a batch, and finds what fails it. `control` does the same with samples: if that fails, it is not the data.

    `search` and `subscriptions` are for publications that fail in compiled code, where they can be searched.
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
        """What the tasks report of a span: of all of it at once, or else of its parts."""
        done: list[R] = []
        waiting = [Span(after, upto)] if after < upto else []
        while waiting:
            span = waiting.pop()
            reports, failure = self._try(partial(self.attempt, span, self.verdicts))
            if failure is None:
                done += reports
                continue
            said = str(failure.problem).partition("\n")[0]
            _log.warning("publications %d to %d fail: %s", span.after + 1, span.upto, said)
            if not span.is_one:
                self._check(failure.problem)
                self._note(failure.marks)
                waiting += reversed(_parts(span, failure.marks))
            elif (found := self._judge(span, failure)) is None:
                waiting.append(span)
            else:
                done += found
        return done

    def _check(self, problem: BaseException) -> None:
        """Raise what went wrong if samples fail, too. Between two verdicts that is asked once."""
        if not self._is_checked:
            _, failure = self._try(lambda _: [self.control()])
            if failure is not None:
                raise problem
        self._is_checked = True

    def _note(self, found: Sequence[StepMark]) -> None:
        """Count the pairs that ended at their deadline: others may have been under way when a worker died."""
        for mark in found:
            if mark.timed_out and mark.subscription:
                self._failed[mark.first, mark.subscription] += 1

    def _judge(self, span: Span, failure: _Failure) -> list[R] | None:
        """Find out what of one publication fails; None if it is to be done again. A pair that was marked when others
        were under way, too, has failed once by then.
        """
        mark = next(iter(failure.marks), StepMark(StepPhase.NOTHING, span.upto, span.upto))
        key = span.upto, mark.subscription
        self._failed[key] += 1
        self._alone[span.upto] += 1
        is_hopeless = self._alone[span.upto] > MOST_FAILURES
        if self._failed[key] < TWICE and not is_hopeless:
            return None
        if span.upto in self.verdicts.publications:  # nothing of it was touched: it is something else
            raise failure.problem
        self._check(failure.problem)
        self._is_checked = False
        if mark.phase is StepPhase.MATCH and self.search is not None and not is_hopeless:
            return self._by_subscriptions(span, failure, mark)
        pairs = self.verdicts.pairs.get(span.upto, ())
        problem = _problem(mark, failure.problem, self.budget)
        if mark.subscription and len(pairs) < MOST_PAIRS and not is_hopeless:
            self._refuse_pair(span.upto, mark.subscription, problem)
        else:
            self.verdicts = self.verdicts.refuse(span.upto, problem)
        return None

    def _by_subscriptions(self, span: Span, failure: _Failure, mark: StepMark) -> list[R] | None:
        """Match one publication with halves of the subscriptions, so that only those that fail are left out."""
        search = self.search
        assert search is not None
        problem, asked = _problem(mark, failure.problem, self.budget), list(self.subscriptions())
        if len(asked) > MOST_SEARCHED:
            self.verdicts = self.verdicts.refuse(span.upto, problem)
            return None
        done: list[R] = []
        waiting, found = [asked], 0
        again: set[str] = set()
        while waiting:
            some = waiting.pop()
            reports, failed = self._try(partial(search, span, self.verdicts, subscriptions=some))
            if failed is None:
                done += reports
            elif len(some) > 1:
                waiting += [some[len(some) // 2 :], some[: len(some) // 2]]
            elif some and some[0] not in again:
                again.add(some[0])
                waiting.append(some)
            elif some and found < MOST_PAIRS:
                found += 1
                self._refuse_pair(span.upto, some[0], problem)
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
        """What an attempt reports, or how it failed; what is not of the data is raised."""
        for starts_left in reversed(range(STARTS)):
            folder = self.folder / uuid4().hex[:8]
            folder.mkdir(parents=True)
            try:
                return do(folder), None
            except Exception as problem:
                if is_slow_start(problem) and starts_left:
                    _log.warning("a Python process of Spark did not start in time: trying again")
                    continue
                if not is_data_failure(problem):
                    raise
                return [], _Failure(problem, list(read_marks(folder)))
        raise AssertionError("the last start is returned or raised")


@dataclass(frozen=True, slots=True)
class _Failure:
    """Why an attempt failed, and the steps that were under way."""

    problem: BaseException
    marks: Sequence[StepMark]


def _parts(span: Span, found: Sequence[StepMark]) -> list[Span]:
    """A span in smaller ones: around the steps that were under way, if that makes them smaller, or else in halves."""
    parts = [span]
    for mark in sorted(found, key=lambda mark: mark.first):
        if mark.first <= parts[-1].upto:
            parts[-1:] = parts[-1].around(mark.first, mark.last)
    is_smaller = len(parts) > 1 or (parts[0].is_careful and not span.is_careful)
    return parts if is_smaller else span.halves()


_DOES = {
    StepPhase.NOTHING: "processing the publication",
    StepPhase.DECODE: "decoding the publication",
    StepPhase.MATCH: "matching the publication",
    StepPhase.EXPLAIN: "explaining the match",
}


def _problem(mark: StepMark, problem: BaseException, budget: Budget) -> BudgetExceeded:
    """What the dead letter says: what was done, what happened, the budget, and how to change it."""
    did, raised = _DOES[mark.phase], find_exception_name(str(problem))
    if mark.timed_out:
        return BudgetExceeded(
            f"{did} takes longer than its budget",
            accepted=f"{budget.seconds:g} seconds",
            hint="the setting stream.step_seconds gives it more time",
        )
    if raised is None or ran_out_of_memory(str(problem)):
        what = "takes more memory than its budget" if raised else "ends the worker, as too much memory does"
        return BudgetExceeded(
            f"{did} {what}",
            accepted=f"{budget.megabytes:,} megabytes",
            hint="the setting stream.step_memory gives it more memory",
        )
    return BudgetExceeded(f"{did} fails", received=_last_line(problem))


def _last_line(problem: BaseException) -> str:
    lines = [line.strip() for line in str(problem).splitlines() if not line.startswith((" ", "\t"))]
    return next((line for line in reversed(lines) if line), type(problem).__name__)[:200]
