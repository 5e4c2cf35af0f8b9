"""Serving: what the operator answers over HTTP: its health, its metrics, admission reviews."""
