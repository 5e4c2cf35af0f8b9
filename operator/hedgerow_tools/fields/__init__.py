"""Fields: how fields, their holders and their changes are told; pure code."""
