"""sandbox: a real, throwaway Kubernetes API on this machine, from pinned Go modules only.

`cluster.Sandbox` is one cluster in a directory; the other modules support it.
"""
