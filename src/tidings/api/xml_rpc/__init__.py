"""XML-RPC endpoints: pings of content systems, WebSub callbacks and the service of paper 002."""
