"""Passes: one pass over a resource, from the cached objects to writes and a report."""
