"""Leader election: who may write, by a Lease; and presence, for operators without election."""
