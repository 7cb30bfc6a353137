"""Feeds: read from the web by polling and by pushes, and written for readers. No HTTP server is started here."""
