"""The matching engine: compiler, index and compiled kernels."""
