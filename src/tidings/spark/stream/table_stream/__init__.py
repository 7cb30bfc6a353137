"""Streams from any source that Spark reads to any sink that it writes, or into the journal of the store."""
