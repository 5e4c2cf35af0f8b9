"""Kubeconfig: how one identity reaches one sandbox."""

from collections.abc import Mapping
from pathlib import Path

import yaml

from hedgerow.sandbox.files import write

_NAME = "hedgerow-sandbox"


def kubeconfig(path: Path, *, server: str, authority: Path, user: Mapping[str, str]) -> Path:
    """Write a kubeconfig with mode 0600; `user` holds the credentials as a kubeconfig names them.

    Files are named, not copied in: a client then needs no temporary files of its own.
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
