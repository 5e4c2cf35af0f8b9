"""Fields: who owns which part of a Kubernetes object, and what differs from a declaration; pure."""
