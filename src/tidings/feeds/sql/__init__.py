"""Tables and queries of feeds: polled feeds and items, entries, hub subscriptions."""
