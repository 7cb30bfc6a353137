"""The `tidings` command: one module per group of commands, and `output.py` for everything that is printed."""
