"""Matching as joins of tables, on Spark SQL: for sets of XPath subscriptions that are larger than memory.

After "Implementing a scalable XML publish/subscribe system using relational database systems" (Tian et al., 2004),
which the comments call the paper.
"""
