"""Planning: what the operator would do, found out by rehearsing its own passes in dry runs."""
