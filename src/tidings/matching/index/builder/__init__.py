"""Segment builder: compiled subscriptions to the arrays of a segment."""
