"""Metadata: resources that are stored and change, and rules whose results things enter, change inside, and leave."""
