"""Routes that fill in their parameters themselves.

FastAPI looks at each parameter and each dependency anew with every request, whether it was sent or not. For a small
publication that takes longer than all that is done with it.
"""

from __future__ import annotations

from typing import Any

from fastapi import Request, Response
from fastapi.exceptions import RequestValidationError

from tidings.interfaces.http.answers import Handler
from tidings.interfaces.http.v1.answering import Versioned


class Direct(Versioned):
    """A route whose endpoint takes the request, what is declared of its query and headers, and what dependencies make
    of the request alone. It is declared, described and refused as any other.
    """

    def handler(self) -> Handler:
        declared, endpoint = self.dependant, self.endpoint
        assert not (declared.path_params or declared.cookie_params or declared.body_params), "not for these"
        callers = self.callers

        async def answer(request: Request) -> Response:
            values: dict[str, Any] = {name: await call(request) for name, call in callers.items()}
            values |= _sent("query", declared.query_params, request.query_params)
            values |= _sent("header", declared.header_params, request.headers)
            found: Response = await endpoint(request, **values)
            return found

        return answer


def _sent(place: str, declared: Any, given: Any) -> dict[str, Any]:
    """The values of those parameters that were sent; the others are as they are by default."""
    values: dict[str, Any] = {}
    for field in declared:
        if (text := given.get(field.alias)) is not None:
            values[field.name], wrong = field.validate(text, values, loc=(place, field.alias))
            if wrong:
                raise RequestValidationError(wrong)
    return values
