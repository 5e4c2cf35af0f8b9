"""audit: how an operator treats the fields of others, tried on a real API server."""
