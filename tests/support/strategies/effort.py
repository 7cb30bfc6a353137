"""Shares of the profile's number of examples for slow property tests."""

from __future__ import annotations

from typing import Any

from hypothesis import settings


def share(of: int, **more: Any) -> settings:
    """Return settings with one in `of` of the profile's examples, for tests with slow examples."""
    return settings(max_examples=max(2, settings.default.max_examples // of), **more)
