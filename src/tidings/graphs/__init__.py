"""RDF graphs: decoders, GQL and SPARQL subscriptions, taxonomies, compilation and explanation (paper 002)."""
