"""Metadata service (paper 001): documents, rules over stored resources, replication, repositories, queries."""
