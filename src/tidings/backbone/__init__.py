"""The backbone: several providers with the same metadata, by one log that each of them applies in order."""
