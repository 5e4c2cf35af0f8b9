"""Kubeconfig: the kubeconfig file of one identity for one sandbox."""

from collections.abc import Mapping
from pathlib import Path

import yaml

from hedgerow_testing.sandbox.files import write

_NAME = "hedgerow-sandbox"


def kubeconfig(path: Path, *, server: str, authority: Path, user: Mapping[str, str]) -> Path:
    """Write a kubeconfig with mode 0600; `user` has the credentials as in a kubeconfig.

    It refers to files instead of embedding them, so that clients need no temporary files. Return
    its path.
    """
    named = {"name": _NAME}
    cluster = {"server": server, "certificate-authority": str(authority)}
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": _NAME,
        "clusters": [{**named, "cluster": cluster}],
        "users": [{**named, "user": dict(user)}],
        "contexts": [{**named, "context": {"cluster": _NAME, "user": _NAME}}],
    }
    return write(path, yaml.safe_dump(content, sort_keys=False))
