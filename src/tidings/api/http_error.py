"""Error with an HTTP status."""

from __future__ import annotations

from tidings.errors import TidingsError


class HttpError(Exception):
    """An error that is answered with a given status."""

    def __init__(self, status: int, problem: TidingsError) -> None:
        self.status, self.problem = status, problem
        super().__init__(str(problem))
