"""Per-request concerns: CSRF check, rate limiter, long polling, request log, deadlines, security headers."""
