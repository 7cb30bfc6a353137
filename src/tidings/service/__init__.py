"""Application layer: ingest, subscriptions, preview, access, backup, workers."""
