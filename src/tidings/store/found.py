"""A match on its way to becoming a notification, and the row it becomes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tidings.model import MATCHED, Reason
from tidings.store.encoding import because_text, mapping_text, storable


@dataclass(frozen=True, slots=True)
class Found:
    """A match on its way to becoming a notification. `because` and `bindings` may come as the texts that `encoding`
    makes of them.
    """

    publication: str
    subscription: str
    subscriber: str
    because: Sequence[Reason] | str = ()
    bindings: dict[str, Any] | str | None = None
    kind: str = MATCHED


def row_of(id: str, one: Found, number: int, time: str) -> tuple[object, ...]:
    """A row of `notifications`, or of `held`: they differ in what the number is."""
    because = one.because if isinstance(one.because, str) else because_text(one.because)
    bindings = one.bindings if isinstance(one.bindings, str) else mapping_text(one.bindings)
    publication = storable(one.publication)
    return one.subscriber, number, id, one.subscription, publication, one.kind, because, bindings, time
