"""sandbox: a throwaway real Kubernetes API on this machine, out of nothing but Go modules.

`hedgerow.sandbox.cluster.Sandbox` is one cluster in a directory; everything else serves it.
"""
