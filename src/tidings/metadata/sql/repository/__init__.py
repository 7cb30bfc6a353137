"""Tables and queries of a repository."""
