"""Check: what an installation needs, and what of it is missing, asked by hand."""
