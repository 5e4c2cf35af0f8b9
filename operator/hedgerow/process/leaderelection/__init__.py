"""Leader election: who may write, by a Lease."""
