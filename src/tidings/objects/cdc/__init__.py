"""Change data capture on Spark: a log of row changes in, notified subscribers out, set-at-a-time."""
