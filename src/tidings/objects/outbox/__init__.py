"""The outbox in the user's database: installation, reading, watches and object lookup."""
