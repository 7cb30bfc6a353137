"""Matching of XPath subscriptions as joins on Spark SQL, for sets larger than memory (paper 003)."""
