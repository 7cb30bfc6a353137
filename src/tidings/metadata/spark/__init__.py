"""Metadata on Spark: the log as a stream source, triggering rules in tasks, evaluation of new rules."""
