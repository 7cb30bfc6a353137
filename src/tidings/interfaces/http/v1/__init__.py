"""The HTTP API: everything below `/v1`."""
