"""Values of attributes as a notification has them: fit for JSON."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, time
from enum import Enum
from math import isfinite
from typing import Any


def plain(value: Any) -> Any:
    """Numbers, texts and truth stay what they are. SQLAlchemy stores an enumeration's value by its name."""
    if isinstance(value, Enum):
        return value.name
    if value is None or isinstance(value, int | str) or (isinstance(value, float) and isfinite(value)):
        return value
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value).hex()
    if isinstance(value, Mapping):
        return {str(key): plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    return str(value)
