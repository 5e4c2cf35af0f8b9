"""Schedule, as typed: when starts come, and what becomes of them."""
