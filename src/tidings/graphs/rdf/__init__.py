"""RDF syntaxes: Turtle, N-Triples, TriG, N-Quads, RDF/XML and JSON-LD."""
