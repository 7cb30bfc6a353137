"""RDF Schema of metadata: classes, properties, literals and vocabulary."""
