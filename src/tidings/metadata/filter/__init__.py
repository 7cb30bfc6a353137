"""Incremental evaluation of rules: dependency graph, trigger index, changes and explanations."""
