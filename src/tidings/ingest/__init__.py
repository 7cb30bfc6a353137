"""Ingest: submissions are parsed, validated and appended to the journal."""
