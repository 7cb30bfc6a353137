"""Bulk requests: subscriptions as JSON lines, and responses with an outcome for each item, as JSON or as lines.

POST /v1/subscriptions     Content-Type: application/x-ndjson
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from tempfile import SpooledTemporaryFile
from typing import Any, TypeVar

from fastapi import Request, Response
from fastapi.responses import StreamingResponse
from starlette import types
from starlette.datastructures import Headers
from starlette.routing import Match

from tidings.api import problem_details
from tidings.api.authentication import SubscribeCaller, get_authenticator
from tidings.api.limits import Limits
from tidings.api.problem_details import HttpError
from tidings.api.rate_limiter import CHARGED_TEXT, charge_requests
from tidings.api.v1.route_classes import VersionedRoute, encode_json_line, v1_status_of
from tidings.api.write_limiter import run_write
from tidings.core import suggest
from tidings.errors import InputError, LimitExceeded, NotAllowed, TidingsError, pointing
from tidings.graphs.rdf.media_types import plain
from tidings.ingest.publisher import unread_item_error
from tidings.ingest.submission import JSON_LINES_TYPES, check_item_count
from tidings.parsers.strict_json import has_more_values, values_problem
from tidings.service.authorization import Caller, Scope
from tidings.service.bulk_subscribe import BulkItem, BulkSubscriber, BulkWarnings
from tidings.service.subscription_lines import parse_subscription_line
from tidings.service.subscriptions import build_wanted
from tidings.service.tidings import Tidings
from tidings.store.subscriptions.admission import AddedSubscription

T = TypeVar("T")

IN_MEMORY = 1 << 20
PIECE = 1 << 16

LINES = "application/x-ndjson"
"""Media type of responses as lines; those of requests are in `ingest.submission`."""


def wants_lines(request: Request) -> bool:
    """Return whether the client accepts outcomes as lines."""
    return LINES in request.headers.get("accept", "")


def bulk_status(new: int, refused: int) -> int:
    """Return 207 if some items were refused, 201 if some are new, 200 if all existed before."""
    return 207 if refused else 201 if new else 200


def problem_outcome(problem: TidingsError) -> dict[str, Any]:
    """Return the outcome of a refused item."""
    return {"problem": problem_details.problem_members(problem, v1_status_of(problem))}


class SpooledResponse:
    """A long list of values, as lines or as the last member of a JSON object.

    It is written to memory first and then to a file: a hundred thousand refused lines have fifty megabytes of errors.
    """

    def __init__(self, as_lines: bool) -> None:
        self._as_lines, self._is_begun = as_lines, False
        self._last: object = None
        self._rest = b""
        self._file = SpooledTemporaryFile(IN_MEMORY)  # noqa: SIM115 - closed when it was sent

    def add(self, head: Mapping[str, Any], item: T, members: Callable[[T], Mapping[str, Any]]) -> None:
        """Add a line: `head`, then the members of the item, serialised once for equal neighbours."""
        if item is not self._last:
            self._last, self._rest = item, encode_json_line(members(item))[1:].encode()
        prefix, suffix = (b"", b"\n") if self._as_lines else (b"," if self._is_begun else b"", b"")
        self._file.write(b"%b%b,%b%b" % (prefix, encode_json_line(head)[:-1].encode(), self._rest, suffix))
        self._is_begun = True

    def response(self, status: int, members: Mapping[str, Any], name: str) -> StreamingResponse:
        """Return the response: the lines, or an object with these members and the list under a name."""
        head = (
            b"" if self._as_lines else f"{encode_json_line(members)[:-1]},{encode_json_line(name)}:[".encode()
        )
        tail = b"" if self._as_lines else b"]}"
        length = {"Content-Length": str(len(head) + self._file.tell() + len(tail))}
        kind = LINES if self._as_lines else "application/json"
        return StreamingResponse(self._pieces(head, tail), status, length, media_type=kind)

    def _pieces(self, head: bytes, tail: bytes) -> Iterator[bytes]:
        with self._file as file:
            file.seek(0)
            yield head
            while piece := file.read(PIECE):
                yield piece
            yield tail


BATCH_LINES = 1_000
"""Lines that are compiled and committed together. Refusals are counted after each batch, which bounds how many are
read beyond the limit; batches of 5,000 import no faster.
"""


class LinesRoute(VersionedRoute):
    """A route for bodies of JSON lines only; other bodies go to the routes after it."""

    takes = LINES

    def matches(self, scope: types.Scope) -> tuple[Match, types.Scope]:
        match, child_scope = super().matches(scope)
        if match is Match.NONE or plain(Headers(scope=scope).get("content-type", "")) in JSON_LINES_TYPES:
            return match, child_scope
        return Match.NONE, {}


class BulkSubscribe:
    """Creates subscriptions from lines."""

    def __init__(self, tidings: Tidings, limits: Limits) -> None:
        self._subscribing, self._limits = tidings.subscribing(limits.of_subscriptions), limits
        self._many = BulkSubscriber(self._subscribing)
        self._unread = unread_item_error(limits.refusals)

    async def create(self, request: Request, _: SubscribeCaller) -> Response:
        """Subscribe to the valid lines, and answer an outcome for each line.

        Receiving a body may take long, so the caller is authenticated again afterwards.
        """
        async with request.app.state.uploads.read(request, self._limits.body) as body:
            caller = await get_authenticator(request).allowed(request, Scope.SUBSCRIBE)
            try:
                check_item_count(body.count(b"\n"), self._limits.bulk)
            except LimitExceeded as problem:
                raise HttpError(413, problem) from problem
            return await run_write(partial(self._subscribe, request, caller, body, wants_lines(request)))

    def _subscribe(self, request: Request, caller: Caller, body: bytes, as_lines: bool) -> Response:
        lines = [(n, line) for n, line in enumerate(body.split(b"\n"), start=1) if line.strip()]
        answer, counts = SpooledResponse(as_lines), Counter[str]()
        warnings = BulkWarnings(self._subscribing)
        with suggest.bounded_search():
            for (number, line), (item, outcome) in zip(lines, self._outcomes(caller, lines), strict=True):
                answer.add(
                    {"line": number} | _list_warnings(item, outcome, warnings), outcome, _outcome_members
                )
                counts[_count_key(outcome)] += 1
                counts["bytes read"] += 0 if outcome is self._unread else len(line)
        refused = min(counts["refused"], self._limits.refusals)
        charge_requests(request, refused + counts["bytes read"] // CHARGED_TEXT)
        status = bulk_status(counts["subscribed"], counts["refused"])
        members = {name: counts[name] for name in ("subscribed", "known", "refused")}
        return answer.response(status, members, "outcomes")

    def _outcomes(
        self, caller: Caller, lines: Sequence[tuple[int, bytes]]
    ) -> Iterator[tuple[BulkItem | TidingsError, AddedSubscription | TidingsError]]:
        """Yield the item and the outcome of each line; after too many refusals no further lines are read."""
        refused = 0
        for start in range(0, len(lines), BATCH_LINES):
            batch = lines[start : start + BATCH_LINES]
            if refused > self._limits.refusals:
                yield from ((self._unread, self._unread) for _ in batch)
                continue
            items = [*_parse_lines(caller, batch, self._limits.values)]
            for item, outcome in zip(items, self._many.subscribe(items), strict=True):
                refused += isinstance(outcome, TidingsError)
                yield item, outcome


def _parse_lines(
    caller: Caller, lines: Sequence[tuple[int, bytes]], most_values: int
) -> Iterator[BulkItem | TidingsError]:
    for _, line in lines:
        try:
            if has_more_values(line, most_values):
                raise values_problem(most_values)
            request = parse_subscription_line(line)
            with pointing("/subscriber"):
                subscriber = caller.resolve_subscriber(request.subscriber)
            subscription = build_wanted(
                subscriber, request.text, request.language, request.id, request.within
            )
            yield BulkItem(subscription, request.is_paused)
        except (InputError, NotAllowed) as problem:
            yield problem.with_traceback(None)


def _count_key(outcome: AddedSubscription | TidingsError) -> str:
    if isinstance(outcome, TidingsError):
        return "refused"
    return "subscribed" if outcome.new else "known"


def _list_warnings(
    item: BulkItem | TidingsError, outcome: AddedSubscription | TidingsError, warnings: BulkWarnings
) -> dict[str, object]:
    """Return the warnings about an accepted subscription, if there are any."""
    if isinstance(item, TidingsError) or isinstance(outcome, TidingsError):
        return {}
    listed = warnings.about(item.subscription)
    return {"warnings": [warning.facts() for warning in listed]} if listed else {}


def _outcome_members(outcome: AddedSubscription | TidingsError) -> dict[str, object]:
    if isinstance(outcome, AddedSubscription):
        return {"id": outcome.id, "new": outcome.new}
    return problem_outcome(outcome)
