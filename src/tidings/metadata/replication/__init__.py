"""Replication of a provider through a shared log: HTTP peers, Kafka, databases."""
