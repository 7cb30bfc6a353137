"""Spark imports every package named `pyspark_*` and registers its `DefaultSource`: here the format `tidings`.

It does so for all programs that use the same environment, so importing this must be quick, and must not fail.
"""

from tidings.spark.data_source.source import TidingsSource as DefaultSource

__all__ = ["DefaultSource"]
