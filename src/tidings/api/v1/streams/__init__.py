"""Live notifications: server-sent events, WebSocket, and the fan-out that feeds both."""
