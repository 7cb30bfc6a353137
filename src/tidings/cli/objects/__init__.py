"""Commands for objects: `model`, `objects`, `watch`."""
