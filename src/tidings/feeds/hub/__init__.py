"""WebSub hub for outgoing feeds."""
