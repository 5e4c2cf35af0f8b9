"""Kube: the boundary to the API server; no code outside it uses HTTP, TLS or kr8s."""
