"""JSON events: schema, decoder, predicate language, compilation and explanation (paper 004)."""
