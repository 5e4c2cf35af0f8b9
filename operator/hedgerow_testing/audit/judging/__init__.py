"""Judging: how an operator's requests treat the fields of others; pure code."""
