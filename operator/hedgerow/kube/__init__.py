"""Kube: the boundary to the API server; nothing above it knows HTTP, TLS or kr8s."""
