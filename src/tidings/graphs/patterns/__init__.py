"""The graph subscription language: GQL of the G-ToPSS paper and SPARQL basic graph patterns."""
