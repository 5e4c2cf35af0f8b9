"""Cache: what the watches have told, indexed, within a budget of memory."""
