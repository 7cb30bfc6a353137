"""Numba-compiled loops. Arrays in, arrays out: no files, logs, settings or Python objects."""
