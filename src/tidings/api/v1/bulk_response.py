"""Responses to bulk requests: an outcome for each item, as JSON or as JSON lines."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from tempfile import SpooledTemporaryFile
from typing import Any, TypeVar

from fastapi import Request
from fastapi.responses import StreamingResponse

from tidings.api import problem_details
from tidings.api.v1.route_classes import encode_json_line, v1_status_of
from tidings.errors import TidingsError

LINES = "application/x-ndjson"
"""Media type of responses as lines; `service.submission` knows those of requests."""


def wants_lines(request: Request) -> bool:
    """Return whether the client accepts outcomes as lines."""
    return LINES in request.headers.get("accept", "")


def bulk_status(new: int, refused: int) -> int:
    """Return 207 if some items were refused, 201 if some are new, 200 if all existed before."""
    return 207 if refused else 201 if new else 200


def problem_outcome(problem: TidingsError) -> dict[str, Any]:
    """Return the outcome of a refused item."""
    return {"problem": problem_details.problem_members(problem, v1_status_of(problem))}


T = TypeVar("T")

IN_MEMORY = 1 << 20
PIECE = 1 << 16


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
        before, after = (b"", b"\n") if self._as_lines else (b"," if self._is_begun else b"", b"")
        self._file.write(b"%b%b,%b%b" % (before, encode_json_line(head)[:-1].encode(), self._rest, after))
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
