"""Engines of other projects for the same task. Libraries are limited to one core before they are imported."""

import os

os.environ.setdefault("POLARS_MAX_THREADS", "1")
