"""Matching algorithms for events: paper 004, section 3."""
