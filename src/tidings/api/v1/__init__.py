"""Routes below `/v1`: publications, subscriptions, notifications, destinations and their schemas."""
