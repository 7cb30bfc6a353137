"""Why there is no answer from the web, in words: nobody listens, nobody is trusted, nobody is in time."""

from __future__ import annotations

import errno
import ssl
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import RemoteDisconnected

import httpx

from tidings.operations.egress_policy import FetchProblem

_BY_ERRNO = {
    errno.ECONNREFUSED: (
        "nothing listens there: the connection was refused",
        "does the server run, at this port?",
    ),
    errno.ECONNRESET: ("the server ended the connection without an answer", None),
    errno.EPIPE: ("the server ended the connection without an answer", None),
    errno.EHOSTUNREACH: ("there is no way to the host from here", "is this machine on the network?"),
    errno.ENETUNREACH: ("there is no way to the host from here", "is this machine on the network?"),
}
_HTTP_SPOKEN = ("WRONG_VERSION_NUMBER", "HTTP_REQUEST", "RECORD_LAYER_FAILURE")
"""What OpenSSL says of a server that answers in plain HTTP."""


@contextmanager
def translate_http_errors(url: str, connect: float, read: float) -> Iterator[None]:
    """What goes wrong on the way, in one kind of error, with the address."""
    try:
        yield
    except httpx.ConnectTimeout as error:
        raise FetchProblem("no connection in time", where=url, accepted=f"{connect:g} seconds") from error
    except httpx.TimeoutException as error:
        raise FetchProblem("no answer in time", where=url, accepted=f"{read:g} seconds") from error
    except (httpx.HTTPError, httpx.InvalidURL, zlib.error) as error:
        raise describe_failure(error, url) from error


def describe_failure(error: Exception, url: str) -> FetchProblem:
    """What a failed request ran into, whichever library made it."""
    cause = _cause(error)
    if isinstance(cause, ssl.SSLCertVerificationError):
        said = cause.verify_message.rstrip(".")
        return FetchProblem("the server's certificate cannot be trusted", where=url, received=said)
    if isinstance(cause, ssl.SSLError):
        return _no_tls(cause, url)
    if isinstance(cause, OSError) and cause.errno in _BY_ERRNO:
        what, hint = _BY_ERRNO[cause.errno]
        return FetchProblem(what, where=url, hint=hint)
    if isinstance(cause, RemoteDisconnected) or "without sending a response" in str(error):
        return FetchProblem("the server ended the connection without an answer", where=url)
    return FetchProblem("no answer that can be read", where=url, received=str(error)[:200])


def _no_tls(cause: ssl.SSLError, url: str) -> FetchProblem:
    reason = cause.reason or "the connection ended"
    hint = "does it answer at http:// instead?" if reason in _HTTP_SPOKEN else None
    said = reason.replace("_", " ").lower()
    return FetchProblem("the server does not speak TLS as it should", where=url, received=said, hint=hint)


def _cause(error: BaseException) -> BaseException:
    """What happened at the bottom: libraries wrap it, each in an error of its own."""
    while (beneath := error.__cause__ or error.__context__) is not None:
        error = beneath
    return error
