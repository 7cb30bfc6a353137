"""Subscriptions: registry, admission, suspension and the view of their subscribers."""
