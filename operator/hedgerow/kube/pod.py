"""Pod: whether this process runs in one."""

import os


def in_pod() -> bool:
    """Return whether this is a pod: Kubernetes sets this variable there (as client-go checks)."""
    return bool(os.environ.get("KUBERNETES_SERVICE_HOST"))
