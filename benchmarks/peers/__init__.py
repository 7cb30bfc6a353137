"""Other people's engines for the same job. What a module imports from there is told to use one core first."""

import os

os.environ.setdefault("POLARS_MAX_THREADS", "1")
