"""The HTTP endpoints: routers for feeds in and feeds out, and the application that holds them. The only place that imports FastAPI."""
