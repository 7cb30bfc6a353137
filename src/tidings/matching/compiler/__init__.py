"""Compiler of subscription texts to plans, one by one and in bulk."""
