"""Owners, as typed: who holds each field of an object, for terminal, program and page."""
