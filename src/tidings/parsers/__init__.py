"""Parsers for untrusted bytes: strict JSON, hardened XML, and a pool of sandboxed parser processes."""
