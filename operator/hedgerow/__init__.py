"""hedgerow: a Kubernetes operator that writes by server-side apply only."""

from importlib.metadata import version

__version__ = version("hedgerow")
