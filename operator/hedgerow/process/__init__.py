"""Process: one operator process from its first check to its last signal."""
