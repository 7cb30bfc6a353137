"""Generation of triggers for SQLite and PostgreSQL."""
