"""Data pipeline on Spark; its public names are `match`, `Subscriptions` and `register`.

from tidings.spark import match

matches = match(events, subscriptions)        # DataFrames in, a DataFrame out
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tidings.spark.dataframe.match import match
    from tidings.spark.dataframe.sql_function import register
    from tidings.spark.dataframe.subscription_set import Subscriptions

_MODULES = {
    "Subscriptions": "dataframe.subscription_set",
    "match": "dataframe.match",
    "register": "dataframe.sql_function",
}

__all__ = ["Subscriptions", "match", "register"]


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module 'tidings.spark' has no attribute '{name}'")
    return getattr(import_module(f"tidings.spark.{_MODULES[name]}"), name)
