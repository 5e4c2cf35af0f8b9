"""Schedule, as typed: `hedgerow schedule`, when starts come, and what happens to them."""
