"""Listener on SQLAlchemy sessions; needs no rights on the database."""
