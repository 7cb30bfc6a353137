"""The graph subscription languages: GQL and SPARQL basic graph patterns."""
