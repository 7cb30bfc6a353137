"""Syndication formats: the items of RSS, Atom and JSON Feed as graphs of one shape."""
