"""Loops over arrays, compiled by Numba. Arrays in, arrays out: no files, logs, settings or Python objects."""
