"""RSS, Atom and JSON feeds: polled and pushed in, rendered out, and a WebSub hub."""
