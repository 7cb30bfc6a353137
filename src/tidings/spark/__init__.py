"""The data pipeline on Spark: session, sources, batch job and stream."""
