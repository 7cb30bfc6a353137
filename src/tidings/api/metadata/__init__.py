"""Routes below `/metadata`: documents, rules, browsing, replication and repositories."""
