"""Subscribers that are objects: commands accept every name of theirs, and say under which they are notified."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidings.errors import Absent, InputError
from tidings.interfaces.cli import output

if TYPE_CHECKING:
    from tidings.store import Store


def resolved(store: Store, subscriber: str, quiet: bool = False) -> str:
    """Return the name under which a subscriber is notified, for commands that keep it; say if it is another one."""
    from tidings.service.subscriber_names import SubscriberNames

    name = SubscriberNames(store).resolve(subscriber)
    if name != subscriber and not quiet:
        output.note(f"{subscriber} is notified as {name}")
    return name


def found_as(store: Store, subscriber: str, quiet: bool = False) -> str:
    """Return the same for commands that only read: what cannot be resolved is looked for as it is."""
    try:
        return resolved(store, subscriber, quiet)
    except Absent:
        return subscriber
    except InputError as problem:
        output.note(problem.headline())
        return subscriber
