"""The HTTP endpoints: routers for feeds in and out, and their application. The only place that imports FastAPI."""
