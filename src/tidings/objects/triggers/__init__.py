"""Triggers generated from a model: the database itself finds out whom a change concerns, in the same transaction."""
