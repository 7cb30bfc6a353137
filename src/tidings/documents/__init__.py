"""XML documents: decoder, XPath subscriptions, compilation to twigs, explanation (paper 003)."""
