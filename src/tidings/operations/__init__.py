"""Running a service: settings, logs, metrics, traces, health, egress policy and outgoing HTTP."""
