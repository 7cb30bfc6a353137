"""Queries over metadata: rule language, SPARQL and browsing."""
