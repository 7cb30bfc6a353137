"""The aspect: a listener on sessions of SQLAlchemy that needs no rights on the database (section 4 of the paper)."""
