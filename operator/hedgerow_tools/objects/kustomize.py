"""Kustomize: what `kubectl kustomize` builds."""

from __future__ import annotations

import shutil
from shlex import quote

from hedgerow.cli.exits import CommandError
from hedgerow_tools import subprocesses

_LOGGED = '"command failed" err="'
"""What comes before an error of `kubectl kustomize`, which is a line of its log."""


async def kustomized(directory: str) -> str:
    """Return what `kubectl kustomize` makes of a directory or an address. Raises CommandError."""
    kubectl = shutil.which("kubectl")
    if kubectl is None:
        raise CommandError(
            "-k needs kubectl, and there is none on the PATH; install it, or give with `-f -` what"
            " kustomize prints elsewhere"
        )
    ended = await subprocesses.run([kubectl, "kustomize", "--", directory])
    if ended.returncode:
        said = "; ".join(ended.stderr.decode(errors="replace").strip().split("\n"))
        said = said.partition(_LOGGED)[2].removesuffix('"') or said
        raise CommandError(f"`kubectl kustomize {quote(directory)}` failed: {said}")
    return ended.stdout.decode(errors="replace")
