"""The papers' own algorithms, for comparison and teaching; the product does not import them."""
