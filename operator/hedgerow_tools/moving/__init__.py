"""Transfers: `hedgerow release` and `hedgerow adopt`, fields that change managers."""
