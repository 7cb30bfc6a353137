"""Persistence on SQLite and PostgreSQL: database, migrations, journal, subscriptions, notifications."""
