"""Plan, as typed: `hedgerow plan`, what applying would do, as text or data."""
