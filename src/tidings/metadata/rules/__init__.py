"""The rule language: parser, validation, normal form and decomposition into atomic rules."""
