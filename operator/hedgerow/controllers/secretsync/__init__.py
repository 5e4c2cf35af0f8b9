"""Secretsync: Secrets of one namespace, copied to the others, key by key."""
