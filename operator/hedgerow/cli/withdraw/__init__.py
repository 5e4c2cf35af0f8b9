"""Withdraw: `hedgerow release --instance`, giving up all that an installation holds."""
