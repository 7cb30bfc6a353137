"""Incoming feeds: polling schedule, fetching, WebSub subscriptions and item extraction."""
