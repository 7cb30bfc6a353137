"""The data source `tidings`: reads the tables of a store, and publishes rows into its journal.

    spark.read.format("tidings").load("sqlite:///.tidings/store.db")
    spark.readStream.format("tidings").option("kind", "notifications").load(url)
    events.write.format("tidings").mode("append").save(url)
    events.writeStream.format("tidings").option("checkpointLocation", folder).start(url)

Every program that uses the same environment imports this module (see `pyspark_tidings`), so it imports what it needs
with the first reader or writer.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSource

if TYPE_CHECKING:
    from pyspark.sql.datasource import (
        DataSourceReader,
        DataSourceStreamReader,
        DataSourceStreamWriter,
        DataSourceWriter,
    )
    from pyspark.sql.types import StructType

FORMAT = "tidings"


class TidingsSource(DataSource):  # type: ignore[misc]
    """The format `tidings`. Options are listed in `options`."""

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def schema(self) -> str:
        columns: str = _load("store_reader").find_columns(self.options)
        return columns

    def reader(self, schema: StructType) -> DataSourceReader:
        return _load("store_reader").build_reader(self.options, schema)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        return _load("store_reader").build_stream_reader(self.options, schema)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        return _load("store_writer").build_writer(self.options, schema, overwrite)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:
        return _load("store_writer").build_stream_writer(self.options, schema, overwrite)


def _load(module: str) -> Any:
    return import_module(f"tidings.spark.data_source.{module}")
