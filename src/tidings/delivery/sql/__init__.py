"""Tables and queries of delivery: destinations, cursors, leases, pending and dead deliveries."""
