"""Webhooks: the HTTP endpoints at which admission reviews are answered."""
