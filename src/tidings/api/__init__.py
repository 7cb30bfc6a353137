"""HTTP API: routes below `/v1`, metadata and XML-RPC endpoints, middleware and the application factory."""
