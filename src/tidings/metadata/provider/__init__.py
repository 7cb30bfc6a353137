"""A provider: registers documents and rules and applies the log."""
