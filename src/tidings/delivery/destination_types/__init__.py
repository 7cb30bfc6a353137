"""One module per type of destination, behind one sender protocol."""
