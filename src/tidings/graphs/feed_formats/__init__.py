"""Parsers of RSS, Atom and JSON Feed: each item becomes a graph of the same shape."""
