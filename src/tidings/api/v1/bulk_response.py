"""What the answers to many that came together have in common, publications or subscriptions: an outcome for each, as
JSON or as lines.
"""

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
"""The media type of lines that are answered; which are taken, `service.submission` knows."""


def wants_lines(request: Request) -> bool:
    """Whether somebody asks for outcomes as lines."""
    return LINES in request.headers.get("accept", "")


def bulk_status(new: int, refused: int) -> int:
    """The status of all together: some are refused, some are new, or all were there before."""
    return 207 if refused else 201 if new else 200


def problem_outcome(problem: TidingsError) -> dict[str, Any]:
    """The outcome of one that is refused."""
    return {"problem": problem_details.problem_members(problem, v1_status_of(problem))}


# Answers that may be long: written as they grow, into memory at first and then into a file, and sent from there.
#
# A hundred thousand lines that are refused are answered with fifty megabytes of reasons.


T = TypeVar("T")

IN_MEMORY = 1 << 20
PIECE = 1 << 16


class SpooledResponse:
    """A list of values on its way out: as lines, or as the last member of a JSON object."""

    def __init__(self, as_lines: bool) -> None:
        self._as_lines, self._is_begun = as_lines, False
        self._last: object = None
        self._rest = b""
        self._file = SpooledTemporaryFile(IN_MEMORY)  # noqa: SIM115 - closed when it was sent

    def add(self, head: Mapping[str, Any], one: T, told: Callable[[T], Mapping[str, Any]]) -> None:
        """Add a line: `head`, then the members of `one`, which are serialised once for equal neighbours."""
        if one is not self._last:
            self._last, self._rest = one, encode_json_line(told(one))[1:].encode()
        before, after = (b"", b"\n") if self._as_lines else (b"," if self._is_begun else b"", b"")
        self._file.write(b"%b%b,%b%b" % (before, encode_json_line(head)[:-1].encode(), self._rest, after))
        self._is_begun = True

    def response(self, status: int, members: Mapping[str, Any], name: str) -> StreamingResponse:
        """The answer: the lines, or an object with these members and the list under a name."""
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
