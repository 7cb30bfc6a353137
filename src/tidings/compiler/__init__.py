"""Text trees become plans: small pure rewrites, listed in order in `compiler.pipeline`."""
