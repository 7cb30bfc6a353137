"""Data pipeline on Spark; its public names are `match`, `write_matches`, `Subscriptions` and `register`.

from tidings.spark import match, write_matches

matches = match(events, subscriptions)              # DataFrames in, a DataFrame out
written = write_matches(events, subscriptions, path)  # DataFrames in, Parquet files out
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tidings.spark.dataframe.match import match
    from tidings.spark.dataframe.sql_function import register
    from tidings.spark.dataframe.subscription_set import Subscriptions
    from tidings.spark.dataframe.writer import write_matches

_MODULES = {
    "Subscriptions": "dataframe.subscription_set",
    "match": "dataframe.match",
    "register": "dataframe.sql_function",
    "write_matches": "dataframe.writer",
}

__all__ = ["Subscriptions", "match", "register", "write_matches"]


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module 'tidings.spark' has no attribute '{name}'")
    return getattr(import_module(f"tidings.spark.{_MODULES[name]}"), name)
