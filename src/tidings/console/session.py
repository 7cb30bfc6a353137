"""Sessions of the console: the visitor of a page, and forms."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any
from urllib.parse import parse_qsl

from fastapi import Depends, Path, Query, Request, Response
from fastapi.responses import HTMLResponse

from tidings.api.authentication import COOKIE, count_request, get_authenticator, read_bearer_token
from tidings.api.csrf import CSRF_FIELD, csrf_token_of, is_csrf_token
from tidings.api.parameters import media_type_of, subscriber_of
from tidings.api.problem_details import HttpError
from tidings.api.request_body import FORM, read_body
from tidings.console.pages import render_template
from tidings.core.arguments import LARGEST_INTEGER, is_storable, parse_number
from tidings.errors import InputError, NotAllowed
from tidings.service.authorization import Caller, Scope
from tidings.store.names import LONGEST

MAX_FORM_BYTES = 1 << 20
"""Largest form; that of a publication may be larger."""
MAX_FIELDS = 100

NumberParameter = Annotated[int, Query(ge=0, le=LARGEST_INTEGER)]
NumberInPath = Annotated[int, Path(ge=1, le=LARGEST_INTEGER)]
"""A number in the query of an address, and one in its path."""

SubscriberParameter = Annotated[str, Query(alias="subscriber", max_length=LONGEST)]
NameParameter = Annotated[str, Query(max_length=LONGEST)]
"""In the query of an address: a subscriber, and a text that is no longer than a name."""


@dataclass(frozen=True, slots=True)
class Visitor:
    """A person who is logged in, and the CSRF token of their forms."""

    caller: Caller
    word: str

    @property
    def name(self) -> str:
        """The name that pages show."""
        return self.caller.subscriber or self.caller.token.name

    @property
    def is_administrator(self) -> bool:
        return self.caller.is_administrator

    @property
    def may_publish(self) -> bool:
        return self.caller.has_scope(Scope.PUBLISH)

    @property
    def may_subscribe(self) -> bool:
        return self.caller.has_scope(Scope.SUBSCRIBE)

    def select_owner(self, subscriber: str | None) -> str | None:
        """Return the subscriber to list; `None` for an administrator who names none, who sees all."""
        if self.is_administrator and not subscriber:
            return None
        return subscriber_of(self.caller, subscriber or None)


def require_visitor(scope: Scope | None = None) -> Callable[[Request], Awaitable[Visitor]]:
    """Return a dependency that requires a login, and the scope if there is one."""

    async def visitor(request: Request) -> Visitor:
        secret = read_bearer_token(request) or request.cookies.get(COOKIE, "")
        caller = await get_authenticator(request).find_caller(request)
        if caller is None:
            raise HttpError(401, NotAllowed("log in first"))
        request.state.visitor = signed_in = Visitor(caller, csrf_token_of(secret))
        count_request(request, caller.token.id)
        if scope is not None and not caller.has_scope(scope):
            received = ", ".join(sorted(caller.token.scopes))
            raise HttpError(
                403, NotAllowed("your token lacks the scope for this page", received=received, accepted=scope)
            )
        return signed_in

    return visitor


AnyVisitor = Annotated[Visitor, Depends(require_visitor())]
SubscribeVisitor = Annotated[Visitor, Depends(require_visitor(Scope.SUBSCRIBE))]
PublishVisitor = Annotated[Visitor, Depends(require_visitor(Scope.PUBLISH))]
AdministerVisitor = Annotated[Visitor, Depends(require_visitor(Scope.ADMINISTER))]


async def read_form(request: Request, most: int = MAX_FORM_BYTES) -> dict[str, str]:
    """Return the fields of a form after checking its CSRF token; of repeated fields, the last."""
    visitor: Visitor = request.state.visitor  # set by the dependency that requires a visitor
    fields = await read_fields(request, most)
    if not is_csrf_token(fields.pop(CSRF_FIELD, ""), visitor.word):
        hint = "you may have logged in or out meanwhile: reload the page and submit it again"
        raise HttpError(403, NotAllowed("this form belongs to another session", hint=hint))
    return fields


async def _read_default_form(request: Request) -> dict[str, str]:
    return await read_form(request)


Form = Annotated[dict[str, str], Depends(_read_default_form)]
"""The fields of a form. Endpoints declare it after their visitor: dependencies run in this order."""


async def read_fields(request: Request, most: int = MAX_FORM_BYTES) -> dict[str, str]:
    """Return the fields of a form without checking its CSRF token."""
    if media_type_of(request) != FORM:
        raise HttpError(415, InputError("not a form", where="Content-Type", accepted=FORM))
    body = await read_body(request, most)
    try:
        pairs = parse_qsl(body.decode(), keep_blank_values=True, max_num_fields=MAX_FIELDS, errors="strict")
    except ValueError as error:
        raise HttpError(400, InputError("invalid form", received=str(error)[:200])) from error
    for name, value in pairs:
        if not is_storable(value):
            raise HttpError(
                400, InputError("a field contains a character that cannot be stored", where=name[:80])
            )
    return {name: value.replace("\r\n", "\n") for name, value in pairs}


def read_number(form: Mapping[str, str], name: str) -> int | None:
    """Return the number in a field, or `None` if it is empty."""
    text = form.get(name, "")
    return parse_number(name, text) if text else None


def render_page(
    name: str, visitor: Visitor | None, here: str, values: Mapping[str, Any] | None = None, status: int = 200
) -> Response:
    """Render a page for a visitor; `here` is its entry in the menu."""
    return HTMLResponse(render_template(name, {"visitor": visitor, "here": here, **(values or {})}), status)
