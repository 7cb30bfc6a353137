"""Reference tables that publications are joined with before matching."""
