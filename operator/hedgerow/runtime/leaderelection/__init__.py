"""Leader election: who may write, by a Lease; and duplicate operators without election."""
