"""The stream: micro-batches, matching tasks, isolation of poison publications, sink."""
