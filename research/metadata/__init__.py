"""Metadata: the dependency graph of paper 001 in memory, and naive evaluation."""
