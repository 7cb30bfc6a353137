"""Commands for metadata: `provider`, `repository`, `query`."""
