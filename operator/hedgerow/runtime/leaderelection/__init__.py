"""Leader election: who may write, by a Lease; and presence, for those who run without it."""
