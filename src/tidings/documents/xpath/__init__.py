"""The XPath subscription language: tokens, parser, tree and error messages."""
