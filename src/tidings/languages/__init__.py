"""Texts become trees. Each language has its grammar beside it and states where a text went wrong."""
