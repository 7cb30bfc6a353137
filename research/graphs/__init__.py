"""Matching algorithms for graphs: paper 002."""
