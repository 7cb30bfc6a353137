"""Whom changes concern, set-at-a-time: a log of row changes in, who is told of which and why out (docs/objects.md)."""
