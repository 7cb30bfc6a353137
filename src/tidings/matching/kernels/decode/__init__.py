"""Kernels that decode JSON and XML bytes into atoms."""
