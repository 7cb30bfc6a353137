"""Problem Details (RFC 9457): the type of a problem, this occurrence, and its facts as members.

    {"type": "/problems#check-problem", "title": "The text parses, but contradicts the schema or itself",
     "status": 422, "detail": "no event type has an attribute 'prise' (column 1)", "instance": "/v1/subscriptions",
     "error": "CheckProblem", "what": "...", "place": {"line": 1, "column": 1, "length": 5}, "pointer": "/text", ...}

`GET /problems` describes each type. `HttpError` gives an error another status than its class has.
"""

from __future__ import annotations

import re
from typing import Any

from tidings.errors import StoreError, TidingsError

MEDIA_TYPE = "application/problem+json"
PAGE = "/problems"


def problem_members(problem: TidingsError, status: int, instance: str | None = None) -> dict[str, Any]:
    """Return the members of a response. `message` is the whole error in one text, with the place underlined."""
    if isinstance(problem, StoreError):
        problem = problem.without_where()  # a path of this machine, or the address of a database server
    kind = type(problem)
    return {
        "type": f"{PAGE}#{problem_name(kind)}",
        "title": problem_title(kind),
        "status": status,
        "detail": problem.headline(),
        **({"instance": instance} if instance else {}),
        **problem.facts(),
        "message": problem.message(),
    }


def problem_name(kind: type[TidingsError]) -> str:
    """Return the name of an error class in addresses: `CheckProblem` is check-problem."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "-", kind.__name__).lower()


def problem_title(kind: type[TidingsError]) -> str:
    """Return the first sentence of a class's docstring, which is the same for all its problems."""
    return re.split(r"[.;:](?:\s|$)", (kind.__doc__ or problem_name(kind)).strip(), maxsplit=1)[0]


def list_problem_types() -> list[type[TidingsError]]:
    """Return all error classes that this process has imported, by name."""
    types, waiting = set[type[TidingsError]](), [TidingsError]
    while waiting:
        kind = waiting.pop()
        types.add(kind)
        waiting += kind.__subclasses__()
    return sorted((kind for kind in types if not kind.__name__.startswith("_")), key=problem_name)


class HttpError(Exception):
    """An error that is answered with a given status."""

    def __init__(self, status: int, problem: TidingsError) -> None:
        self.status, self.problem = status, problem
        super().__init__(str(problem))
