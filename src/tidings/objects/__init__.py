"""Objects: a data model whose designer marked whom a change of an object concerns (semantic notification)."""
