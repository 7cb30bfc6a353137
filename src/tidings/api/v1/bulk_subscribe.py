"""Bulk subscriptions, one per line, each with its own outcome.

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

from tidings.api.authentication import SubscribeCaller, get_authenticator
from tidings.api.http_error import HttpError
from tidings.api.middleware.rate_limiter import CHARGED_TEXT, charge_requests
from tidings.api.middleware.write_limiter import run_write
from tidings.api.v1 import bulk_response
from tidings.api.v1.bulk_response import SpooledResponse
from tidings.api.v1.limits import Limits
from tidings.api.v1.route_classes import VersionedRoute
from tidings.core import suggest
from tidings.errors import InputError, NotAllowed, OverLimit, TidingsError, pointing
from tidings.graphs.rdf.media_types import plain
from tidings.parsers.strict_json import has_more_values, values_problem
from tidings.service.authorization import Caller, Scope
from tidings.service.bulk_subscribe import BulkItem, BulkSubscriber, BulkWarnings
from tidings.service.submission import JSON_LINES_TYPES, refuse_too_many, unread_problem
from tidings.service.subscription_lines import parse_subscription_line
from tidings.service.subscriptions import build_wanted
from tidings.service.tidings import Tidings
from tidings.store.subscriptions.admission import AddedSubscription

TOGETHER = 1_000
"""Lines that are compiled and committed together. Refusals are counted after each batch, which bounds how many are
read beyond the limit; batches of 5,000 import no faster.
"""


class LinesRoute(VersionedRoute):
    """A route for bodies of JSON lines only; other bodies go to the routes after it."""

    takes = bulk_response.LINES

    def matches(self, scope: types.Scope) -> tuple[Match, types.Scope]:
        found, child = super().matches(scope)
        if found is Match.NONE or plain(Headers(scope=scope).get("content-type", "")) in JSON_LINES_TYPES:
            return found, child
        return Match.NONE, {}


class BulkSubscribe:
    """Creates subscriptions from lines."""

    def __init__(self, tidings: Tidings, limits: Limits) -> None:
        self._subscribing, self._limits = tidings.subscribing(limits.of_subscriptions), limits
        self._many = BulkSubscriber(self._subscribing)
        self._unread = unread_problem(limits.refusals)

    async def create(self, request: Request, _: SubscribeCaller) -> Response:
        """Subscribe to the valid lines, and answer an outcome for each line.

        Receiving a body may take long, so the caller is authenticated again afterwards.
        """
        async with request.app.state.uploads.read(request, self._limits.body) as body:
            caller = await get_authenticator(request).allowed(request, Scope.SUBSCRIBE)
            try:
                refuse_too_many(body.count(b"\n"), self._limits.bulk)
            except OverLimit as problem:
                raise HttpError(413, problem) from problem
            take = partial(self._taken, request, caller, body, bulk_response.wants_lines(request))
            return await run_write(take)

    def _taken(self, request: Request, caller: Caller, body: bytes, as_lines: bool) -> Response:
        lines = [(n, line) for n, line in enumerate(body.split(b"\n"), start=1) if line.strip()]
        answer, counted = SpooledResponse(as_lines), Counter[str]()
        warnings = BulkWarnings(self._subscribing)
        with suggest.bounded_search():
            for (number, line), (wish, outcome) in zip(lines, self._outcomes(caller, lines), strict=True):
                answer.add({"line": number} | _warned(wish, outcome, warnings), outcome, _outcome_members)
                counted[_count_key(outcome)] += 1
                counted["bytes read"] += 0 if outcome is self._unread else len(line)
        refused = min(counted["refused"], self._limits.refusals)
        charge_requests(request, refused + counted["bytes read"] // CHARGED_TEXT)
        status = bulk_response.bulk_status(counted["subscribed"], counted["refused"])
        members = {name: counted[name] for name in ("subscribed", "known", "refused")}
        return answer.response(status, members, "outcomes")

    def _outcomes(
        self, caller: Caller, lines: Sequence[tuple[int, bytes]]
    ) -> Iterator[tuple[BulkItem | TidingsError, AddedSubscription | TidingsError]]:
        """Yield the request and the outcome of each line; after too many refusals the rest is not read."""
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
) -> Iterator[BulkItem | TidingsError]:
    for _, line in lines:
        try:
            if has_more_values(line, most_values):
                raise values_problem(most_values)
            asked = parse_subscription_line(line)
            with pointing("/subscriber"):
                subscriber = caller.acting_as(asked.subscriber)
            wanted = build_wanted(subscriber, asked.text, asked.language, asked.id, asked.within)
            yield BulkItem(wanted, asked.is_paused)
        except (InputError, NotAllowed) as problem:
            yield problem.with_traceback(None)


def _count_key(outcome: AddedSubscription | TidingsError) -> str:
    if isinstance(outcome, TidingsError):
        return "refused"
    return "subscribed" if outcome.new else "known"


def _warned(
    wish: BulkItem | TidingsError, outcome: AddedSubscription | TidingsError, warnings: BulkWarnings
) -> dict[str, object]:
    """Return the warnings about an accepted subscription, if there are any."""
    if isinstance(wish, TidingsError) or isinstance(outcome, TidingsError):
        return {}
    found = warnings.about(wish.subscription)
    return {"warnings": [warning.facts() for warning in found]} if found else {}


def _outcome_members(outcome: AddedSubscription | TidingsError) -> dict[str, object]:
    if isinstance(outcome, AddedSubscription):
        return {"id": outcome.id, "new": outcome.new}
    return bulk_response.problem_outcome(outcome)
