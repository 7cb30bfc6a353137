"""The data model: classes, associations, marks, validation and mapping to tables."""
