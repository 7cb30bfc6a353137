"""Limits from the environment: `TIDINGS_DOCUMENT_LIMITS="depth=100 nodes=5000"`."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import fields
from typing import TypeVar

from tidings.errors import InputError, SetupError

L = TypeVar("L")


def limits_from(variable: str, kind: type[L]) -> L:
    """The limits that a variable of the environment names; those it does not name are as they are by default.

    The processes of a stream inherit the variable; on a cluster, `spark.executorEnv` hands it on.
    """
    given: dict[str, int] = {}
    known = {field.name for field in fields(kind)}  # type: ignore[arg-type]
    for word in os.environ.get(variable, "").replace(",", " ").split():
        name, _, number = word.partition("=")
        if name not in known or not number.replace("_", "").isdecimal():
            accepted = f"NAME=NUMBER, where NAME is one of {', '.join(sorted(known))}"
            raise SetupError("not a limit", where=variable, received=word, accepted=accepted)
        given[name] = int(number.replace("_", ""))
    return _made(variable, kind, given)


def _made(variable: str, kind: Callable[..., L], given: dict[str, int]) -> L:
    try:
        return kind(**given)
    except InputError as problem:
        raise SetupError(
            problem.what,
            where=f"{variable}, {problem.where}",
            received=problem.received,
            accepted=problem.accepted,
        ) from problem
