"""Limits from the environment: `TIDINGS_DOCUMENT_LIMITS="depth=100 nodes=5000"`."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import fields
from typing import Any, TypeVar

from tidings.errors import DecodeProblem, InputError, SetupError

L = TypeVar("L")

_WHOLE = re.compile("[0-9]{1,18}")


def check_limits(limits: Any, most: Mapping[str, int]) -> None:
    """Raise if a limit is below 1 or above its maximum in `most`, by default 2**31 - 1."""
    for field in fields(limits):
        value, highest = getattr(limits, field.name), most.get(field.name, 2**31 - 1)
        if not 1 <= value <= highest:
            raise InputError(
                "not a limit", where=field.name, received=str(value), accepted=f"1 to {highest:,}"
            )


def over_limit(
    over: Mapping[str, tuple[str, str]],
    limit: str,
    limits: object,
    where: str | None = None,
    received: str | None = None,
) -> DecodeProblem:
    """Build the error for input beyond a limit; `over` has the message and the unit for each limit."""
    message, unit = over[limit]
    accepted = f"at most {getattr(limits, limit):,} {unit} (the limit {limit})"
    return DecodeProblem(message, where=where, received=received, accepted=accepted)


def limits_from(variable: str, kind: type[L]) -> L:
    """Read limits from an environment variable; those it does not name keep their defaults.

    The processes of a stream inherit the variable; on a cluster, pass it with `spark.executorEnv`.
    """
    return limits_in(os.environ.get(variable, ""), kind, variable)


def limits_in(text: str, kind: type[L], variable: str) -> L:
    """Parse limits; `variable` is the source that errors name."""
    limits: dict[str, int] = {}
    names = {field.name for field in fields(kind)}  # type: ignore[arg-type]
    for word in text.replace(",", " ").split():
        name, _, number = word.partition("=")
        if name not in names or not _WHOLE.fullmatch(number.replace("_", "")):
            accepted = f"NAME=NUMBER, where NAME is one of {', '.join(sorted(names))}"
            raise SetupError("not a limit", where=variable, received=word, accepted=accepted)
        limits[name] = int(number.replace("_", ""))
    try:
        return kind(**limits)
    except InputError as problem:
        raise SetupError(
            problem.what,
            where=f"{variable}, {problem.where}",
            received=problem.received,
            accepted=problem.accepted,
        ) from problem
