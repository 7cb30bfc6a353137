"""The `tidings` command: one module per group of commands."""
