"""Shards: many replicas share the namespaces, by slices; pure."""
