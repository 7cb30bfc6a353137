"""A repository: near its users, with what its rules ask a provider for, and with answers of its own."""
