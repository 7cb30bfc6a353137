"""Web console: server-rendered pages with a little JavaScript."""
