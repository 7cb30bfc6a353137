"""Kernels that check shapes: twigs of documents and patterns of graphs."""
