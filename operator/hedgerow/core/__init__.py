"""Core: the pure vocabulary of controllers, plans and field ownership."""
