"""Matching algorithms of paper 002."""
