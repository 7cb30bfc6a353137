"""Loops over arrays, compiled by Numba. Arrays in, arrays out: no files, no logs, no settings, no Python objects.

The same kernels serve the library call, a Spark task and the service.
"""
