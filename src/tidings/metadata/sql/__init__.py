"""Tables and queries of metadata: log, resources, rules, results and notifications."""
