"""Notifications: written in batches, numbered per subscriber, read by cursor."""
