"""A request that cannot be taken as it is."""

from __future__ import annotations

from tidings.errors import TidingsError


class HttpError(Exception):
    """A request that cannot be taken as it is, with the status that says so."""

    def __init__(self, status: int, problem: TidingsError) -> None:
        self.status, self.problem = status, problem
        super().__init__(str(problem))
