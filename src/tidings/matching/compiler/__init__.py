"""From subscription texts to plans, singly and in bulk."""
