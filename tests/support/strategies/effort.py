"""How much of what the profile asks for a property test gets: `make fuzz` multiplies all of them."""

from __future__ import annotations

from typing import Any

from hypothesis import settings


def share(of: int, **more: Any) -> settings:
    """One in so many of the profile's examples, for tests of which each example takes long."""
    return settings(max_examples=max(2, settings.default.max_examples // of), **more)
