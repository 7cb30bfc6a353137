"""Matching algorithms of paper 004."""
