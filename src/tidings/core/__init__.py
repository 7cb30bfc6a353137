"""Small utilities without knowledge of the domain."""
