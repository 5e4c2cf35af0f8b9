"""memory: a cluster in memory that knows field ownership.

`server.Server` answers requests by value; `cluster.Cluster` has the methods of the operator's own
client. `tests/cluster/test_conformance.py` compares both with a real API server.
"""
