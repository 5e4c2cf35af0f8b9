"""Owners, as typed: `hedgerow owners`, who holds each field, as text, data or page."""
