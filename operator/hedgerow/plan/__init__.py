"""Plan: the writes that make the cluster match what a controller desires; pure functions."""
