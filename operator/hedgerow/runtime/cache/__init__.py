"""Cache: the watched objects, indexed, within a memory budget."""
