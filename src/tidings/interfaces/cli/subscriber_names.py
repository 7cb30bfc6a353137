"""Subscribers that are objects: `Student:S1` is notified as `Person:1`, by the topmost class and by the key."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidings.errors import Absent, TidingsError
from tidings.interfaces.cli import output

if TYPE_CHECKING:
    from tidings.service import Tidings
    from tidings.store import ObjectSource


def notified_as(tidings: Tidings, subscriber: str, quiet: bool = False) -> str:
    """The name under which a subscriber has notifications; the one given if that has some, or is no object's.

    Objects of a class below another one share its keys: a student and the person that she is are one subscriber.
    """
    sources = tidings.store.object_sources.load() if ":" in subscriber else []
    if not sources or tidings.store.notifications.last_sequence(subscriber):
        return subscriber
    for source in sources:
        try:
            name = _name_in(source, subscriber)
        except Absent:
            continue  # no object of this database
        except TidingsError as problem:
            output.note(f"{source.name} cannot be asked who {subscriber} is: {problem.headline()}")
            continue
        if name != subscriber:
            if not quiet:
                output.note(f"{subscriber} is notified as {name}")
            return name
    return subscriber


def _name_in(source: ObjectSource, subscriber: str) -> str:
    from tidings.service.sources import opened
    from tidings.service.watching import Watches

    with opened(source) as found:
        return Watches(found).told_as(subscriber)
