"""Shards: which replica serves what, as their Leases tell."""
