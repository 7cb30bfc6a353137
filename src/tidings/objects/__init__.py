"""Database objects (paper 000): data models, generated triggers, session listener, change streams."""
