"""Readers of data models: PlantUML, XMI and SQLAlchemy classes."""
