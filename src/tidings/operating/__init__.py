"""Operating a service: its settings, whether it is well, what it counts, what it logs, and traces.

Everything may import it, and it imports the words only: a stream and a web page count and log in the same way. The
libraries for this (pydantic-settings, structlog, prometheus-client, OpenTelemetry) stay in here.
"""
