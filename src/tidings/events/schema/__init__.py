"""The integrated event schema: domains, attributes, event types and how a schema grows."""
