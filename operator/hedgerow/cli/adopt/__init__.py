"""Adopt: `hedgerow adopt`, moving fields over from another field manager."""
