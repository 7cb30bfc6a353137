"""Outgoing feeds: a feed per subscription, its address and its formats."""
