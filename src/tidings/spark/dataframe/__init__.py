"""Matching as a transformation of DataFrames: publications and subscriptions in, matches out."""
