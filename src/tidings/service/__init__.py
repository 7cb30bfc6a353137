"""Application layer: subscriptions, preview, access, backup, workers."""
