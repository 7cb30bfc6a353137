"""Tables of object notifications and of watched databases."""
