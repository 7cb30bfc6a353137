"""Many subscriptions over HTTP, one a line: each stands for itself, and has its outcome.

POST /v1/subscriptions     Content-Type: application/x-ndjson
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial

from fastapi import Request, Response
from starlette import types
from starlette.datastructures import Headers
from starlette.routing import Match

from tidings import guessing
from tidings.errors import InputError, NotAllowed, OverLimit, TidingsError, pointing
from tidings.interfaces.http.access import Subscribing, asking
from tidings.interfaces.http.rates import CHARGED_TEXT, charge
from tidings.interfaces.http.refused import Refused
from tidings.interfaces.http.v1 import outcomes
from tidings.interfaces.http.v1.answering import Versioned
from tidings.interfaces.http.v1.limits import Limits
from tidings.interfaces.http.v1.spooled import Spooled
from tidings.interfaces.http.writing import write
from tidings.publications.rdf_media_types import plain
from tidings.publications.strict_json import has_more_values, values_problem
from tidings.service import Tidings
from tidings.service.access import Caller, Scope
from tidings.service.bulk_warnings import BulkWarnings
from tidings.service.offering import LINES, not_read, refuse_too_many
from tidings.service.subscribing import wanted_of
from tidings.service.subscribing_many import SubscribingMany, Wish
from tidings.service.subscription_lines import asked_in
from tidings.store import Added

TOGETHER = 1_000
"""Lines that are compiled and committed together. The refusals are counted after each of these groups, so this bounds
how many lines are read beyond the limit; a group of 5,000 imports no faster.
"""


class ByLine(Versioned):
    """A route for bodies of lines alone; whatever else comes to its address is for the routes after it."""

    takes = outcomes.LINES

    def matches(self, scope: types.Scope) -> tuple[Match, types.Scope]:
        found, child = super().matches(scope)
        if found is Match.NONE or plain(Headers(scope=scope).get("content-type", "")) in LINES:
            return found, child
        return Match.NONE, {}


class SubscribingLines:
    """Takes subscriptions line by line."""

    def __init__(self, tidings: Tidings, limits: Limits) -> None:
        self._subscribing, self._limits = tidings.subscribing(limits.of_subscriptions), limits
        self._many = SubscribingMany(self._subscribing)
        self._unread = not_read(limits.refusals)

    async def create(self, request: Request, _: Subscribing) -> Response:
        """Take those that are good; of each there is told what became of it. Lines may be long on their way: who sends
        them is looked up again when they are there.
        """
        async with request.app.state.uploads.read(request, self._limits.body) as body:
            caller = await asking(request).allowed(request, Scope.SUBSCRIBE)
            try:
                refuse_too_many(body.count(b"\n"), self._limits.bulk)
            except OverLimit as problem:
                raise Refused(413, problem) from problem
            take = partial(self._taken, request, caller, body, outcomes.wants_lines(request))
            return await write(take)

    def _taken(self, request: Request, caller: Caller, body: bytes, as_lines: bool) -> Response:
        lines = [(n, line) for n, line in enumerate(body.split(b"\n"), start=1) if line.strip()]
        answer, counted = Spooled(as_lines), Counter[str]()
        warnings = BulkWarnings(self._subscribing)
        with guessing.bounded():
            for (number, line), (wish, outcome) in zip(lines, self._outcomes(caller, lines), strict=True):
                answer.add({"line": number} | _warned(wish, outcome, warnings), outcome, _told)
                counted[_became(outcome)] += 1
                counted["bytes read"] += 0 if outcome is self._unread else len(line)
        refused = min(counted["refused"], self._limits.refusals)
        charge(request, refused + counted["bytes read"] // CHARGED_TEXT)
        status = outcomes.status_of_many(counted["subscribed"], counted["refused"])
        members = {name: counted[name] for name in ("subscribed", "known", "refused")}
        return answer.response(status, members, "outcomes")

    def _outcomes(
        self, caller: Caller, lines: Sequence[tuple[int, bytes]]
    ) -> Iterator[tuple[Wish | TidingsError, Added | TidingsError]]:
        """Yield what each line asks for, and its outcome; when too many were refused, the rest is not read."""
        refused = 0
        for start in range(0, len(lines), TOGETHER):
            some = lines[start : start + TOGETHER]
            if refused > self._limits.refusals:
                yield from ((self._unread, self._unread) for _ in some)
                continue
            wanted = [*_wanted(caller, some, self._limits.values)]
            for wish, outcome in zip(wanted, self._many.take(wanted), strict=True):
                refused += isinstance(outcome, TidingsError)
                yield wish, outcome


def _wanted(
    caller: Caller, lines: Sequence[tuple[int, bytes]], most_values: int
) -> Iterator[Wish | TidingsError]:
    for _, line in lines:
        try:
            if has_more_values(line, most_values):
                raise values_problem(most_values)
            asked = asked_in(line)
            with pointing("/subscriber"):
                subscriber = caller.acting_as(asked.subscriber)
            wanted = wanted_of(subscriber, asked.text, asked.language, asked.id, asked.within)
            yield Wish(wanted, asked.is_paused)
        except (InputError, NotAllowed) as problem:
            yield problem.with_traceback(None)


def _became(outcome: Added | TidingsError) -> str:
    if isinstance(outcome, TidingsError):
        return "refused"
    return "subscribed" if outcome.new else "known"


def _warned(
    wish: Wish | TidingsError, outcome: Added | TidingsError, warnings: BulkWarnings
) -> dict[str, object]:
    """The warnings about one that was taken, if there are any."""
    if isinstance(wish, TidingsError) or isinstance(outcome, TidingsError):
        return {}
    found = warnings.about(wish.subscription)
    return {"warnings": [warning.facts() for warning in found]} if found else {}


def _told(outcome: Added | TidingsError) -> dict[str, object]:
    if isinstance(outcome, Added):
        return {"id": outcome.id, "new": outcome.new}
    return outcomes.refusal(outcome)
