"""Cache: the watched objects, indexed, within bounds."""
