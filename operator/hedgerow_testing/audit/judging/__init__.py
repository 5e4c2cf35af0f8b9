"""Judging: what the requests of an operator say about the fields of others; pure code."""
