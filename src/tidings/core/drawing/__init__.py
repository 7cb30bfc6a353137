"""Layered diagrams as SVG."""
