"""A repository: a cache near its users, kept in sync with a provider."""
