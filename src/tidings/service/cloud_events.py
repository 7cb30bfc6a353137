"""Notifications as CloudEvents, each with its publication from the journal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tidings.cloud_events import LARGEST, MEDIA_TYPE, TYPE, cloud_event, text_of
from tidings.model import Notification
from tidings.store import Store

__all__ = ["LARGEST", "MEDIA_TYPE", "TYPE", "cloud_event", "cloud_events", "text_of"]


def cloud_events(store: Store, told: Sequence[Notification], largest: int = LARGEST) -> list[dict[str, Any]]:
    """The CloudEvents of notifications, in order. Publications are read at once, and those too large not at all."""
    found = store.personal_feeds.publications({one.publication for one in told}, largest)
    return [cloud_event(one, found.get(one.publication), largest) for one in told]
