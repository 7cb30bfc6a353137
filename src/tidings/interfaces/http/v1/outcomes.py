"""What the answers to many that came together have in common, publications or subscriptions: an outcome for each, as
JSON or as lines.
"""

from __future__ import annotations

from typing import Any

from fastapi import Request

from tidings.errors import TidingsError
from tidings.interfaces.http import problems
from tidings.interfaces.http.v1.answering import status_of

LINES = "application/x-ndjson"
"""The media type of lines that are answered; which are taken, `service.offering` knows."""


def wants_lines(request: Request) -> bool:
    """Whether somebody asks for outcomes as lines."""
    return LINES in request.headers.get("accept", "")


def status_of_many(new: int, refused: int) -> int:
    """The status of all together: some are refused, some are new, or all were there before."""
    return 207 if refused else 201 if new else 200


def refusal(problem: TidingsError) -> dict[str, Any]:
    """The outcome of one that is refused."""
    return {"problem": problems.details(problem, status_of(problem))}
